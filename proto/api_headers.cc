// The library that owns the precompiled header of the generated messages; it holds no code.
