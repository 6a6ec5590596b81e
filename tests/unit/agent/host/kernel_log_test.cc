#include "worker/agent/host/kernel_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::agent {
namespace {

constexpr absl::Duration kNow = absl::Seconds(1000);

TEST(KernelLog, SelectsWhatIsAboutTheProcessOrTheHardware) {
  constexpr char kRecords[] =
      "6,800,999000000,-;usb 1-1: new high-speed USB device\n"
      " SUBSYSTEM=usb\n"
      "3,801,999100000,-;Memory cgroup out of memory: Killed process 77 (llm-trainer) total-vm:9kB\n"
      "3,802,999200000,-;Memory cgroup out of memory: Killed process 78 (llm-trainer) total-vm:9kB\n"
      "6,803,999300000,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=llm-trainer,pid=77,uid=0\n"
      "3,804,999400000,-;NVRM: Xid (PCI:0000:17:00): 31, pid=77, MMU Fault\n"
      "3,805,999500000,-;NVRM: Xid (PCI:0000:17:00): 31, pid=78, MMU Fault\n"
      "3,806,999600000,-;NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.\n"
      "0,807,999700000,-;mce: [Hardware Error]: Machine check events logged\n";

  EXPECT_EQ(SelectKernelLines(kRecords, 77, kNow),
            "Memory cgroup out of memory: Killed process 77 (llm-trainer) total-vm:9kB\n"
            "oom-kill:constraint=CONSTRAINT_MEMCG,task=llm-trainer,pid=77,uid=0\n"
            "NVRM: Xid (PCI:0000:17:00): 31, pid=77, MMU Fault\n"
            "NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.\n"
            "mce: [Hardware Error]: Machine check events logged\n");
}

TEST(KernelLog, WhatIsOldIsNotAboutIt) {
  EXPECT_EQ(SelectKernelLines("3,1,800000000,-;Out of memory: Killed process 77 (x)\n", 77, kNow), "");
}

TEST(KernelLog, SurvivesWhatIsNoRecord) {
  EXPECT_EQ(SelectKernelLines("\n;\nx,y,z;Killed process 77\n,,;\n1,2\n", 77, kNow), "");
}

TEST(KernelLog, TheTailHasTheLastMessagesWithTheirTimes) {
  std::string records = "6,1,5140900,-;first\n KEY=value\n";
  for (int i = 0; i < 200; ++i) records += "6,2,1000000007,-;later\n";

  std::string tail = LastKernelLines(records);

  EXPECT_EQ(LastKernelLines("6,1,5140900,-;first\n KEY=value\n"), "[5.140900] first\n");
  EXPECT_EQ(tail.find("first"), std::string::npos);
  EXPECT_EQ(tail.substr(0, tail.find('\n')), "[1000.000007] later");
}

}  // namespace
}  // namespace llmctl::agent
