package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
)

// BenchmarkWebhook measures webhooks that are stored and synchronised to the disk before they are answered, beside a bare
// Echo handler that reads the body and stores nothing, over real connections.
func BenchmarkWebhook(b *testing.B) {
	b.Run("durable", func(b *testing.B) {
		w := newWorld(b, setup{})
		flood(b, w.http.URL)
	})
	b.Run("bare", func(b *testing.B) {
		e := echo.New()
		e.POST("/webhook/alertmanager", func(c echo.Context) error {
			if _, err := io.Copy(io.Discard, c.Request().Body); err != nil {
				return err
			}
			return c.NoContent(http.StatusOK)
		})
		s := httptest.NewServer(e)
		defer s.Close()
		flood(b, s.URL)
	})
}

func flood(b *testing.B, base string) {
	b.Helper()
	const senders = 32
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	bodies := make([][]byte, 256)
	for i := range bodies {
		bodies[i] = notification(0, alert{name: fmt.Sprint("A", i), model: fmt.Sprint("m", i%50)})
	}
	took := make([][]time.Duration, senders)
	errs := make([]error, senders)
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := s; i < b.N; i += senders {
				at := time.Now()
				if err := sendOne(b, client, base, bodies[i%len(bodies)]); err != nil {
					errs[s] = err
					return
				}
				took[s] = append(took[s], time.Since(at))
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	b.StopTimer()
	for _, err := range errs {
		require.NoError(b, err)
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/elapsed.Seconds(), "webhooks/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}

func sendOne(b *testing.B, client *http.Client, base string, body []byte) error {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/webhook/alertmanager", bytes.NewReader(body))
	if err != nil {
		return err
	}
	authorized(req)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // It was read.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}
