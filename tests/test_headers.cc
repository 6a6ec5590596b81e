// The program that owns the tests' precompiled header; it is never run.
int main() { return 0; }
