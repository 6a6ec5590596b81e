#include "coordinator/store/sqlite/migrations.h"

namespace llmctl::store {

const std::vector<Migration>& Migrations() {
  static const std::vector<Migration> migrations = {
      // 1: entity records.
      {
          "CREATE TABLE job (id TEXT PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, phase TEXT NOT NULL, "
          "record TEXT NOT NULL) WITHOUT ROWID",
          // One job per idempotency key, whatever the program above believes.
          "CREATE TABLE submission (project TEXT NOT NULL, idempotency_key TEXT NOT NULL, job TEXT NOT NULL, "
          "PRIMARY KEY (project, idempotency_key)) WITHOUT ROWID",
          "CREATE INDEX submission_job ON submission (job)",
          "CREATE TABLE node (id TEXT PRIMARY KEY, state TEXT NOT NULL, record TEXT NOT NULL) WITHOUT ROWID",
          "CREATE TABLE job_event (job TEXT NOT NULL, sequence BIGINT NOT NULL, time_ns BIGINT NOT NULL, "
          "attempt BIGINT NOT NULL, generation BIGINT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, "
          "PRIMARY KEY (job, sequence)) WITHOUT ROWID",
          "CREATE TABLE counter (name TEXT PRIMARY KEY, value BIGINT NOT NULL) WITHOUT ROWID",
          "INSERT INTO counter (name, value) VALUES ('term', 0), ('next_job', 1), ('revision', 0)",
      },
      // 2: jobs with row ids. A row of a table without them holds no more than a quarter of a page: each record had a
      // page of its own behind it, three times the space and as much to write with every commit.
      {
          "CREATE TABLE job_with_rowid (id TEXT NOT NULL PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, "
          "phase TEXT NOT NULL, record TEXT NOT NULL)",
          "INSERT INTO job_with_rowid SELECT id, project, name, phase, record FROM job",
          "DROP TABLE job",
          "ALTER TABLE job_with_rowid RENAME TO job",
      },
      // 3: what crashed the coordinator, and what cannot be read.
      {
          "CREATE TABLE crash (entity TEXT PRIMARY KEY, count BIGINT NOT NULL, stage TEXT NOT NULL, "
          "time_ns BIGINT NOT NULL) WITHOUT ROWID",
          "CREATE TABLE damaged (entity TEXT PRIMARY KEY, record TEXT NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID",
      },
  };
  return migrations;
}

}  // namespace llmctl::store
