-- Times are milliseconds since 1970, 0 for none. {{serial}} and {{blob}} differ between the engines.

CREATE TABLE incidents (
  id            TEXT PRIMARY KEY,
  scope_key     TEXT NOT NULL,
  scope         TEXT NOT NULL,
  model         TEXT NOT NULL DEFAULT '',
  status        TEXT NOT NULL,
  group_key     TEXT NOT NULL DEFAULT '',
  receiver      TEXT NOT NULL DEFAULT '',
  reason        TEXT NOT NULL DEFAULT '',
  external_url  TEXT NOT NULL DEFAULT '',
  truncated     TEXT NOT NULL DEFAULT '{}',
  started_at    BIGINT NOT NULL,
  opened_at     BIGINT NOT NULL,
  firing_since  BIGINT NOT NULL,
  notified_at   BIGINT NOT NULL,
  resolved_at   BIGINT NOT NULL DEFAULT 0,
  closed_at     BIGINT NOT NULL DEFAULT 0,
  flaps         BIGINT NOT NULL DEFAULT 0,
  repeats       BIGINT NOT NULL DEFAULT 0,
  revision      BIGINT NOT NULL DEFAULT 0,
  verdict       TEXT NOT NULL DEFAULT '',
  bottleneck    TEXT NOT NULL DEFAULT '',
  trigger_id    TEXT NOT NULL DEFAULT '',
  probability   DOUBLE PRECISION NOT NULL DEFAULT 0
);
-- Of a scope at most one incident fires.
CREATE UNIQUE INDEX incidents_firing ON incidents (scope_key) WHERE status = 'firing';
CREATE INDEX incidents_of_scope ON incidents (scope_key, closed_at);
CREATE INDEX incidents_listed ON incidents (opened_at, id);
CREATE INDEX incidents_similar ON incidents (bottleneck, opened_at);

-- The newest period of each alert. Rows without an incident are resolves that came before what they resolve.
CREATE TABLE alerts (
  incident_id TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  scope_key   TEXT NOT NULL,
  status      TEXT NOT NULL,
  starts_at   BIGINT NOT NULL,
  ends_at     BIGINT NOT NULL DEFAULT 0,
  changed_at  BIGINT NOT NULL,
  doubt_at    BIGINT NOT NULL DEFAULT 0,
  body        TEXT NOT NULL,
  PRIMARY KEY (incident_id, fingerprint)
);
CREATE INDEX alerts_of_scope ON alerts (scope_key, changed_at);

CREATE TABLE deliveries (
  id       TEXT PRIMARY KEY,
  first_at BIGINT NOT NULL,
  copies   BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX deliveries_age ON deliveries (first_at);

CREATE TABLE jobs (
  id          {{serial}},
  job_key     TEXT NOT NULL UNIQUE,
  kind        TEXT NOT NULL,
  incident_id TEXT NOT NULL DEFAULT '',
  reason      TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL,
  run_at      BIGINT NOT NULL,
  again_at    BIGINT NOT NULL DEFAULT 0,
  generation  BIGINT NOT NULL DEFAULT 1,
  attempts    BIGINT NOT NULL DEFAULT 0,
  owner       TEXT NOT NULL DEFAULT '',
  lease_until BIGINT NOT NULL DEFAULT 0,
  error       TEXT NOT NULL DEFAULT ''
);
CREATE INDEX jobs_due ON jobs (state, run_at);

CREATE TABLE reports (
  incident_id TEXT NOT NULL,
  revision    BIGINT NOT NULL,
  at          BIGINT NOT NULL,
  status      TEXT NOT NULL,
  verdict     TEXT NOT NULL,
  bottleneck  TEXT NOT NULL,
  trigger_id  TEXT NOT NULL,
  probability DOUBLE PRECISION NOT NULL,
  body        {{blob}},
  PRIMARY KEY (incident_id, revision)
);

CREATE TABLE conversations (
  id          {{serial}},
  incident_id TEXT NOT NULL,
  channel     TEXT NOT NULL,
  target      TEXT NOT NULL,
  state       TEXT NOT NULL,
  wanted      BIGINT NOT NULL DEFAULT 0,
  shown       BIGINT NOT NULL DEFAULT 0,
  wanted_at   BIGINT NOT NULL DEFAULT 0,
  next_at     BIGINT NOT NULL DEFAULT 0,
  attempts    BIGINT NOT NULL DEFAULT 0,
  owner       TEXT NOT NULL DEFAULT '',
  lease_until BIGINT NOT NULL DEFAULT 0,
  reason      TEXT NOT NULL DEFAULT '',
  error       TEXT NOT NULL DEFAULT '',
  UNIQUE (incident_id, channel)
);
CREATE INDEX conversations_due ON conversations (state, next_at);

CREATE TABLE posts (
  conversation_id BIGINT NOT NULL,
  part            TEXT NOT NULL,
  body            TEXT NOT NULL DEFAULT '',
  shown           BIGINT NOT NULL DEFAULT 0,
  done            BIGINT NOT NULL DEFAULT 0,
  ref_channel     TEXT NOT NULL DEFAULT '',
  ref_id          TEXT NOT NULL DEFAULT '',
  intent_at       BIGINT NOT NULL DEFAULT 0,
  reposts         BIGINT NOT NULL DEFAULT 0,
  created_at      BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, part)
);

CREATE TABLE feedback (
  id          {{serial}},
  incident_id TEXT NOT NULL,
  author      TEXT NOT NULL,
  at          BIGINT NOT NULL,
  opinion     TEXT NOT NULL,
  cause       TEXT NOT NULL DEFAULT '',
  comment     TEXT NOT NULL DEFAULT '',
  UNIQUE (incident_id, author)
);

CREATE TABLE steps (
  incident_id TEXT NOT NULL,
  cause       TEXT NOT NULL,
  step        TEXT NOT NULL,
  author      TEXT NOT NULL,
  at          BIGINT NOT NULL,
  state       TEXT NOT NULL,
  note        TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (incident_id, cause, step)
);

CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
