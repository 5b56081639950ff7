package store_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/store/storetest"
)

// What the loops ask every second is answered from an index: it must not become slower with what is kept for 90 days.
func TestPollingReadsAnIndex(t *testing.T) {
	t.Parallel()
	address := storetest.SQLite(t)
	storetest.Open(t, address)
	db := open(t, address)
	for _, q := range []string{
		`SELECT MIN(run_at) FROM jobs WHERE state = 'ready'`,
		`SELECT MIN(CASE WHEN lease_until > next_at THEN lease_until ELSE next_at END) FROM conversations
			WHERE state = 'active' AND shown < wanted`,
		`SELECT id FROM conversations WHERE state = 'active' AND shown < wanted AND next_at <= 5 AND lease_until <= 5
			ORDER BY CASE WHEN shown > 0 THEN 1 ELSE 0 END, next_at, wanted_at, id LIMIT 1`,
	} {
		text := plan(t, db, q)
		require.Contains(t, text, "INDEX", q)
		if strings.Contains(q, "conversations") {
			require.Contains(t, text, "conversations_waiting", q)
		}
	}
}

// plan is how SQLite would answer a query.
func plan(t *testing.T, db *sql.DB, q string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+q)
	require.NoError(t, err)
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		steps = append(steps, detail)
	}
	require.NoError(t, rows.Err())
	return strings.Join(steps, "; ")
}
