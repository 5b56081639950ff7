package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

// Replicas that start together on an empty database wait for each other.
func TestConcurrentMigration(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			var wg sync.WaitGroup
			for range 6 {
				wg.Go(func() {
					s, err := store.Open(t.Context(), address, store.Options{})
					if err == nil {
						err = s.Close()
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// An older binary works beside a newer one, unless the newer schema says that it cannot.
func TestSchemaOfTheFuture(t *testing.T) {
	t.Parallel()
	for engine, fresh := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			s, err := store.Open(t.Context(), address, store.Options{})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			db := open(t, address)
			_, err = db.ExecContext(t.Context(), "UPDATE schema_version SET version = 99")
			require.NoError(t, err)
			s = storetest.Open(t, address)
			notify(t, s, 0, firing("A", 0))
			_, err = db.ExecContext(t.Context(), "UPDATE schema_version SET readable_by = 98")
			require.NoError(t, err)
			_, err = store.Open(t.Context(), address, store.Options{})
			require.ErrorContains(t, err, "the database has schema 99, which this version (schema ")
			require.ErrorContains(t, err, "restore a backup made before the upgrade")
		})
	}
}
