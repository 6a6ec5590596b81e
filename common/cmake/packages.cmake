# Third-party packages, each as one imported target named ext_<name>. llm_library(EXTERNAL <name>...)
# takes only what the folder's row in layers.cmake allows.
find_package(Threads REQUIRED)
find_package(absl CONFIG REQUIRED)

function(llm_external name)
  add_library(ext_${name} INTERFACE)
  target_link_libraries(ext_${name} INTERFACE ${ARGN})
endfunction()

llm_external(absl absl::status absl::statusor absl::strings absl::str_format absl::time absl::flat_hash_map
  absl::flat_hash_set absl::hash absl::base absl::cord)
llm_external(threads Threads::Threads)
llm_external(json)  # nlohmann-json is headers only.
find_package(OpenSSL REQUIRED)
llm_external(openssl OpenSSL::Crypto)
llm_external(xxhash xxhash)
llm_external(sqlite soci_sqlite3 soci_core sqlite3)
llm_external(icu icuuc icudata)
find_package(ZLIB REQUIRED)
llm_external(zlib ZLIB::ZLIB)
# The tables of about 160 languages, in a library that nothing names: they take the place of the 80 in libcld2.
llm_external(cld2 "-Wl,--push-state,--no-as-needed,-lcld2_full,--pop-state" cld2)
llm_external(fasttext fasttext)
llm_external(simdjson simdjson)
llm_external(isal isal)
llm_external(zstd zstd)
llm_external(yaml yaml-cpp)
llm_external(re2 re2)
llm_external(vectorscan hs)
llm_external(dw dw)
llm_external(cli11)  # headers only
llm_external(httplib cpp-httplib)
llm_external(dl ${CMAKE_DL_LIBS})
find_package(prometheus-cpp CONFIG REQUIRED)
llm_external(prometheus prometheus-cpp::core)

if(LLM_BUILD_GRPC)
  find_package(Protobuf 3.21 REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
  llm_external(protobuf protobuf::libprotobuf)
  llm_external(grpc gRPC::grpc++ protobuf::libprotobuf)
  llm_external(grpc_reflection gRPC::grpc++_reflection)
endif()

file(GLOB LLM_SITE_PACKAGES "${LLM_DEPS_DIR}/venv/lib/python3*/site-packages")

if(LLM_BUILD_PARQUET)
  # The wheel has neither a CMake package nor names without a version.
  set(arrow_dir "${LLM_SITE_PACKAGES}/pyarrow")
  file(GLOB arrow_libraries "${arrow_dir}/libarrow.so.[0-9]*" "${arrow_dir}/libparquet.so.[0-9]*")
  list(LENGTH arrow_libraries arrow_count)
  if(NOT arrow_count EQUAL 2 OR NOT EXISTS "${arrow_dir}/include/parquet/file_reader.h")
    message(FATAL_ERROR "Arrow (of the pyarrow wheel) not found under ${LLM_DEPS_DIR}/venv: run deploy/setup.sh, or "
      "pass -DLLM_DEPS_DIR=... or -DLLM_BUILD_PARQUET=OFF")
  endif()
  add_library(ext_arrow INTERFACE)
  target_include_directories(ext_arrow SYSTEM INTERFACE "${arrow_dir}/include")
  target_link_libraries(ext_arrow INTERFACE ${arrow_libraries})
  target_link_options(ext_arrow INTERFACE "LINKER:-rpath,${arrow_dir}")
endif()

if(LLM_BUILD_TORCH)
  if(NOT EXISTS "${LLM_SITE_PACKAGES}/torch/lib/libtorch_cpu.so")
    message(FATAL_ERROR "LibTorch not found under ${LLM_DEPS_DIR}/venv: run deploy/setup.sh, or pass "
      "-DLLM_DEPS_DIR=... or -DLLM_BUILD_TORCH=OFF")
  endif()
  set(torch_dir "${LLM_SITE_PACKAGES}/torch")
  add_library(ext_torch INTERFACE)
  target_include_directories(ext_torch SYSTEM INTERFACE
    "${torch_dir}/include" "${torch_dir}/include/torch/csrc/api/include")
  target_compile_definitions(ext_torch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED)
  target_link_directories(ext_torch INTERFACE "${torch_dir}/lib")
  target_link_libraries(ext_torch INTERFACE torch_cpu c10)
  target_link_options(ext_torch INTERFACE
    "LINKER:-rpath,${torch_dir}/lib" "LINKER:-rpath-link,${LLM_SITE_PACKAGES}/nvidia/cu13/lib")
endif()

if(LLM_BUILD_TESTS)
  find_package(GTest REQUIRED)
  llm_external(gtest GTest::gmock GTest::gtest)
  llm_external(gtest_main GTest::gtest_main GTest::gmock GTest::gtest)
endif()
