-- What waits to be told is looked for every second, and few of the conversations of 90 days wait. The index by state, which
-- lists them all, must go: without statistics SQLite prefers it.
CREATE INDEX conversations_waiting ON conversations (next_at) WHERE state = 'active' AND shown < wanted;
DROP INDEX conversations_due;
