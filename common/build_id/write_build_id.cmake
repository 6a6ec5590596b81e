# cmake -DVERSION=... -DSOURCE=... -DOUT=... -P write_build_id.cmake: runs with every build, writes on change.
# LLM_BUILD_ID in the environment names the build where there is no git (a source archive, a package).
set(commit "$ENV{LLM_BUILD_ID}")
if(NOT commit)
  execute_process(COMMAND git --no-optional-locks describe --always --abbrev=12 --dirty=+ --exclude=*
    WORKING_DIRECTORY "${SOURCE}"
    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT commit)
  set(commit "unknown")
endif()
# The slot is longer than its text, so that a test can make another build of a program by renaming it in place.
file(CONFIGURE OUTPUT "${OUT}" CONTENT [[
namespace llmctl {
extern const char kBuildIdSlot[96];
const char kBuildIdSlot[96] = "llmctl-build-id=@VERSION@+@commit@";
}  // namespace llmctl
]] @ONLY)
