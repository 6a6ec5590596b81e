// The library that owns the precompiled header of programs with many flags; it holds no code.
