#include "tests/numerics/models/reference_llama.h"

#include <cmath>

#include <torch/torch.h>

#include "absl/strings/str_cat.h"

namespace llmctl::engine {
namespace {

class Reference {
 public:
  Reference(const layout::ModelShape& shape, const std::vector<double>& flat) : shape_(shape) {
    for (const layout::Parameter& p : layout::Parameters(shape).parameters) {
      weights_[p.name] = torch::from_blob(const_cast<double*>(flat.data() + p.offset), p.shape, torch::kDouble)
                             .clone()
                             .set_requires_grad(true);
    }
  }

  torch::Tensor Logits(const torch::Tensor& tokens) {
    torch::Tensor x = weights_["model.embed_tokens.weight"].index_select(0, tokens.flatten());
    x = x.view({tokens.size(0), tokens.size(1), shape_.hidden});
    for (int64_t layer = 0; layer < shape_.layers; ++layer) x = Block(absl::StrCat("model.layers.", layer, "."), x);
    x = Norm(x, "model.norm.weight");
    return torch::matmul(x, weights_[shape_.tie_embeddings ? "model.embed_tokens.weight" : "lm_head.weight"].t());
  }

  std::map<std::string, torch::Tensor> weights_;

 private:
  torch::Tensor Norm(const torch::Tensor& x, const std::string& name) {
    return x * torch::rsqrt(x.square().mean(-1, true) + shape_.norm_epsilon) * weights_[name];
  }

  // [samples, heads, length, head size], rotated as Hugging Face's rotate_half does.
  torch::Tensor Rotate(const torch::Tensor& x) {
    int64_t size = shape_.head_size();
    torch::Tensor frequency = torch::pow(shape_.rope_theta, -torch::arange(0, size, 2, torch::kDouble) / size);
    torch::Tensor angle = torch::outer(torch::arange(x.size(2), torch::kDouble), frequency).repeat({1, 2});
    torch::Tensor halves_swapped = torch::cat({-x.slice(-1, size / 2), x.slice(-1, 0, size / 2)}, -1);
    return x * angle.cos() + halves_swapped * angle.sin();
  }

  torch::Tensor Heads(const torch::Tensor& x, const std::string& weight, int64_t heads) {
    return torch::matmul(x, weights_[weight].t())
        .view({x.size(0), x.size(1), heads, shape_.head_size()})
        .transpose(1, 2);
  }

  torch::Tensor Attention(const std::string& prefix, const torch::Tensor& x) {
    torch::Tensor q = Rotate(Heads(x, prefix + "q_proj.weight", shape_.heads));
    int64_t group = shape_.heads / shape_.kv_heads;
    torch::Tensor k = Rotate(Heads(x, prefix + "k_proj.weight", shape_.kv_heads)).repeat_interleave(group, 1);
    torch::Tensor v = Heads(x, prefix + "v_proj.weight", shape_.kv_heads).repeat_interleave(group, 1);
    torch::Tensor scores = torch::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(shape_.head_size()));
    torch::Tensor later = torch::ones({x.size(1), x.size(1)}, torch::kBool).triu(1);
    torch::Tensor weights = scores.masked_fill(later, -INFINITY).softmax(-1);
    torch::Tensor out = torch::matmul(weights, v).transpose(1, 2).reshape({x.size(0), x.size(1), shape_.hidden});
    return torch::matmul(out, weights_[prefix + "o_proj.weight"].t());
  }

  torch::Tensor Block(const std::string& prefix, torch::Tensor x) {
    x = x + Attention(prefix + "self_attn.", Norm(x, prefix + "input_layernorm.weight"));
    torch::Tensor h = Norm(x, prefix + "post_attention_layernorm.weight");
    torch::Tensor gate = torch::matmul(h, weights_[prefix + "mlp.gate_proj.weight"].t());
    torch::Tensor up = torch::matmul(h, weights_[prefix + "mlp.up_proj.weight"].t());
    return x + torch::matmul(torch::silu(gate) * up, weights_[prefix + "mlp.down_proj.weight"].t());
  }

  layout::ModelShape shape_;
};

}  // namespace

ReferenceResult RunReferenceLlama(const layout::ModelShape& shape, const std::vector<double>& flat,
                                  const ReferenceBatch& batch, double gradient_scale) {
  Reference reference(shape, flat);
  int64_t length = static_cast<int64_t>(batch.tokens.size()) / batch.samples;
  auto view = [&](const std::vector<int32_t>& ids) {
    return torch::from_blob(const_cast<int32_t*>(ids.data()), {batch.samples, length}, torch::kInt).to(torch::kLong);
  };
  torch::Tensor logits = reference.Logits(view(batch.tokens));
  torch::Tensor target = view(batch.targets).flatten();
  torch::Tensor counted = target >= 0;
  torch::Tensor log_softmax = logits.view({-1, shape.vocabulary}).log_softmax(-1);
  torch::Tensor of_target = log_softmax.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
  torch::Tensor loss = -(of_target * counted.to(torch::kDouble)).sum();
  (loss * gradient_scale).backward();
  ReferenceResult result;
  result.loss = loss.item<double>();
  result.logits = logits.detach();
  for (auto& [name, weight] : reference.weights_) result.gradients[name] = weight.grad();
  return result;
}

}  // namespace llmctl::engine
