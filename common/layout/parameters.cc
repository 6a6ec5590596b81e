#include "common/layout/parameters.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llmctl::layout {
namespace {

constexpr int64_t kOffsetMultiple = 16;
// What the attention kernels keep on the stack for.
constexpr int64_t kHeadSizeMax = 256;

class TableBuilder {
 public:
  void Add(std::string name, std::vector<int64_t> shape, double init_std) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    bool decay = shape.size() > 1;
    table_.parameters.push_back({std::move(name), std::move(shape), table_.flat_size, count, decay, init_std});
    table_.flat_size += (count + kOffsetMultiple - 1) / kOffsetMultiple * kOffsetMultiple;
    table_.count += count;
  }

  ParameterTable Finish() { return std::move(table_); }

 private:
  ParameterTable table_;
};

void AddLlamaLayer(const ModelShape& s, int64_t layer, TableBuilder& table) {
  std::string prefix = absl::StrCat("model.layers.", layer, ".");
  int64_t query_rows = s.heads * s.head_size(), key_rows = s.kv_heads * s.head_size();
  // Two branches a layer end in the residual stream: scaled so that its variance does not grow with depth.
  double branch_std = s.init_std / std::sqrt(2.0 * static_cast<double>(s.layers));

  table.Add(prefix + "input_layernorm.weight", {s.hidden}, 0);
  table.Add(prefix + "self_attn.q_proj.weight", {query_rows, s.hidden}, s.init_std);
  table.Add(prefix + "self_attn.k_proj.weight", {key_rows, s.hidden}, s.init_std);
  table.Add(prefix + "self_attn.v_proj.weight", {key_rows, s.hidden}, s.init_std);
  table.Add(prefix + "self_attn.o_proj.weight", {s.hidden, query_rows}, branch_std);
  table.Add(prefix + "post_attention_layernorm.weight", {s.hidden}, 0);
  table.Add(prefix + "mlp.gate_proj.weight", {s.ffn, s.hidden}, s.init_std);
  table.Add(prefix + "mlp.up_proj.weight", {s.ffn, s.hidden}, s.init_std);
  table.Add(prefix + "mlp.down_proj.weight", {s.hidden, s.ffn}, branch_std);
}

}  // namespace

absl::Status ValidateShape(const ModelShape& s) {
  std::vector<std::string> faults;
  auto require = [&](bool ok, auto&&... message) {
    if (!ok) faults.push_back(absl::StrCat(message...));
  };
  require(s.architecture == "llama", "architecture: expected \"llama\", found \"", s.architecture, "\"");
  require(s.layers > 0, "layers: expected at least 1, found ", s.layers);
  require(s.vocabulary > 0, "vocabulary: expected at least 1, found ", s.vocabulary);
  require(s.ffn > 0, "ffn_size: expected at least 1, found ", s.ffn);
  require(s.hidden > 0 && s.hidden % 16 == 0, "hidden_size: expected a multiple of 16, found ", s.hidden);
  require(s.norm_epsilon > 0, "norm_epsilon: expected more than 0, found ", s.norm_epsilon);
  require(s.rope_theta > 1, "rope_theta: expected more than 1, found ", s.rope_theta);
  require(s.init_std > 0, "init_std: expected more than 0, found ", s.init_std);
  if (s.heads <= 0 || s.kv_heads <= 0) {
    faults.push_back(absl::StrCat("heads and kv_heads: expected at least 1, found ", s.heads, " and ", s.kv_heads));
  } else {
    require(s.heads % s.kv_heads == 0, "kv_heads: expected a divisor of heads (", s.heads, "), found ", s.kv_heads);
    require(s.hidden % (2 * s.heads) == 0, "heads: expected hidden_size (", s.hidden,
            ") to be a multiple of twice the heads, found ", s.heads);
    require(s.head_size() <= kHeadSizeMax, "heads: expected a head size of at most ", kHeadSizeMax, ", found ",
            s.head_size(), "; use more heads");
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model: ", absl::StrJoin(faults, "; ")));
}

ParameterTable Parameters(const ModelShape& shape) {
  TableBuilder table;
  table.Add("model.embed_tokens.weight", {shape.vocabulary, shape.hidden}, shape.init_std);
  for (int64_t layer = 0; layer < shape.layers; ++layer) AddLlamaLayer(shape, layer, table);
  table.Add("model.norm.weight", {shape.hidden}, 0);
  if (!shape.tie_embeddings) table.Add("lm_head.weight", {shape.vocabulary, shape.hidden}, shape.init_std);
  return table.Finish();
}

}  // namespace llmctl::layout
