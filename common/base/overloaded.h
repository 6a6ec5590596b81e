// Overloaded{lambdas...}: a visitor for std::visit. Without a default arm, a new alternative does not
// compile until it is handled.
#pragma once

namespace llmctl {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace llmctl
