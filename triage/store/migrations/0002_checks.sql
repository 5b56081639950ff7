-- Re-checks that people asked for. The body is what was measured; empty until it was.
CREATE TABLE checks (
  id          {{serial}},
  incident_id TEXT NOT NULL,
  author      TEXT NOT NULL,
  cause       TEXT NOT NULL DEFAULT '',
  step        TEXT NOT NULL DEFAULT '',
  asked_at    BIGINT NOT NULL,
  done_at     BIGINT NOT NULL DEFAULT 0,
  body        TEXT NOT NULL DEFAULT ''
);
CREATE INDEX checks_of_incident ON checks (incident_id, asked_at);
