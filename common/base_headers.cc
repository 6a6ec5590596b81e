// The library that owns the precompiled header of all others; it holds no code.
