// The schema, as numbered steps that are never edited once released: a file of schema n gets steps n+1... in one
// transaction each. A schema newer than the last step here belongs to a newer program and is refused.
#pragma once

#include <vector>

namespace llmctl::store {

// Statements of one step; its number is its place, counted from 1.
using Migration = std::vector<const char*>;

const std::vector<Migration>& Migrations();

}  // namespace llmctl::store
