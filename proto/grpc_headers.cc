// The library that owns the precompiled header of gRPC and the generated API; it holds no code.
