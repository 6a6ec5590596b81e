# Who may use whom. One row per folder: what its libraries may name in DEPS and EXTERNAL. Adding an edge
# here is a design decision; docs/ARCHITECTURE.md draws the same picture.
#
#   llm_layer(<folder> [DEPS <folder>...] [EXTERNAL <package>...])
function(llm_layer folder)
  cmake_parse_arguments(L "" "" "DEPS;EXTERNAL" ${ARGN})
  set_property(GLOBAL PROPERTY "llm_layer_deps_${folder}" "${folder};${L_DEPS}")
  set_property(GLOBAL PROPERTY "llm_layer_external_${folder}" "absl;threads;${L_EXTERNAL}")
  set_property(GLOBAL APPEND PROPERTY llm_layers "${folder}")
endfunction()

llm_layer(common/base EXTERNAL openssl xxhash)
llm_layer(common/build_id)
llm_layer(common/json DEPS common/base EXTERNAL json)
llm_layer(common/archive DEPS common/base)
llm_layer(common/diagnosis DEPS common/json common/base EXTERNAL json)
llm_layer(common/layout DEPS common/base)
llm_layer(common/observe DEPS common/base EXTERNAL httplib)
llm_layer(common/spec DEPS common/base proto EXTERNAL protobuf yaml re2)
llm_layer(proto EXTERNAL protobuf grpc)

llm_layer(coordinator/model DEPS common/base)
llm_layer(coordinator/placement DEPS coordinator/model common/base)
llm_layer(coordinator/classify DEPS coordinator/model common/json common/base EXTERNAL re2 json)
llm_layer(coordinator/core DEPS coordinator/model coordinator/classify coordinator/placement common/base)
llm_layer(coordinator/store DEPS coordinator/model common/base EXTERNAL sqlite simdjson)
llm_layer(coordinator/runtime
  DEPS coordinator/core coordinator/classify coordinator/placement coordinator/store coordinator/model common/base
       common/diagnosis
       common/observe
  EXTERNAL prometheus)
llm_layer(coordinator/rpc
  DEPS coordinator/runtime coordinator/core coordinator/model common/base common/diagnosis common/observe common/spec
       proto
  EXTERNAL grpc grpc_reflection protobuf)
llm_layer(coordinator
  DEPS coordinator/rpc coordinator/runtime coordinator/store coordinator/core coordinator/classify coordinator/placement
       coordinator/model common/base common/build_id common/observe proto
  EXTERNAL grpc grpc_reflection prometheus cli11)

llm_layer(worker/contract DEPS common/base EXTERNAL json)
llm_layer(worker/shim DEPS worker/contract common/base EXTERNAL json)
llm_layer(worker/agent/core DEPS worker/contract common/base)
llm_layer(worker/agent/devices DEPS common/base EXTERNAL dl nvml)
llm_layer(worker/agent
  DEPS worker/agent/core worker/agent/devices worker/contract common/archive common/base common/build_id
       common/diagnosis common/observe common/spec proto
  EXTERNAL grpc protobuf prometheus httplib cli11 json dw)
llm_layer(worker/data/text DEPS common/base EXTERNAL icu xxhash)
llm_layer(worker/data/tokenizer DEPS worker/data/text common/json common/base EXTERNAL json icu)
llm_layer(worker/data/shards DEPS worker/data/tokenizer worker/contract common/json common/base EXTERNAL json xxhash)
llm_layer(worker/data/pack DEPS worker/data/shards common/base)
llm_layer(worker/data/mix DEPS worker/data/shards common/base)
llm_layer(worker/data/inspect DEPS worker/data/shards worker/data/spill worker/data/tokenizer common/base)
llm_layer(worker/data/filters DEPS worker/data/text common/base EXTERNAL xxhash)
llm_layer(worker/data/spill DEPS common/base EXTERNAL xxhash)
llm_layer(worker/data/perplexity
  DEPS worker/data/tokenizer worker/data/text worker/data/spill common/base
  EXTERNAL icu xxhash zlib)
llm_layer(worker/data/language DEPS common/base EXTERNAL cld2 fasttext icu)
llm_layer(worker/data/dedup DEPS worker/data/spill worker/data/text common/base EXTERNAL icu xxhash)
llm_layer(worker/data/pii DEPS worker/data/text common/base EXTERNAL icu openssl re2 vectorscan)
llm_layer(worker/data/normalize DEPS worker/data/text common/base EXTERNAL simdjson)
llm_layer(worker/data/read DEPS worker/data/normalize common/json common/base EXTERNAL simdjson json isal zstd dl)
llm_layer(worker/data/parquet DEPS worker/data/read EXTERNAL arrow)
llm_layer(worker/data/pipeline
  DEPS worker/data/read worker/data/normalize worker/data/language worker/data/filters worker/data/perplexity
       worker/data/pii worker/data/dedup worker/data/text worker/data/spill worker/data/tokenizer worker/data/pack
       worker/data/mix worker/data/shards worker/contract common/json common/base
  EXTERNAL json zstd)
llm_layer(worker/data
  DEPS worker/data/pipeline worker/data/read worker/data/normalize worker/data/filters worker/data/inspect
       worker/data/perplexity worker/data/tokenizer worker/data/shards worker/data/spill worker/contract common/json
       common/base
  EXTERNAL json cli11)
llm_layer(worker/engine/checkpoint DEPS common/layout common/json common/base EXTERNAL json)
llm_layer(worker/engine
  DEPS worker/engine worker/engine/checkpoint worker/data/shards worker/data/tokenizer worker/contract
       common/layout common/base
  EXTERNAL torch json xxhash dl)
llm_layer(worker/cuda DEPS worker/engine common/base EXTERNAL torch dl)
llm_layer(worker/trainer
  DEPS worker/engine worker/engine/checkpoint worker/data/shards worker/data/tokenizer worker/contract
       common/layout common/base
  EXTERNAL torch cli11 json)

llm_layer(client
  DEPS proto common/archive common/diagnosis common/spec common/base common/build_id
  EXTERNAL grpc protobuf cli11 json)
llm_layer(simulator
  DEPS coordinator/core coordinator/placement coordinator/model coordinator/store coordinator/runtime
       worker/agent/core worker/contract common/base
  EXTERNAL cli11 sqlite)

llm_layer(bench DEPS worker/engine common/layout common/base EXTERNAL torch cli11 json)
llm_layer(bench/control DEPS common/spec proto common/base EXTERNAL grpc protobuf sqlite cli11 json)
llm_layer(bench/pipeline
  DEPS worker/data/dedup worker/data/filters worker/data/language worker/data/normalize worker/data/pack
       worker/data/perplexity worker/data/pii worker/data/read worker/data/shards
       worker/data/spill worker/data/text worker/data/tokenizer common/base
  EXTERNAL cld2 cli11 json)
