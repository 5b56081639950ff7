//go:build crash

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// alert is one alert of the storm with the periods in which it fires.
type alert struct {
	name, model string
	periods     []period
}

type period struct{ from, to time.Duration }

// storm is what happens, from the beginning of the test.
type storm struct {
	models []string
	alerts []alert
	length time.Duration
}

// newStorm lets each model have one incident of two alerts at a random time; every third one flaps.
func newStorm(r *rand.Rand, models int, within time.Duration) storm {
	s := storm{length: within}
	for i := range models {
		model := fmt.Sprintf("storm-%03d", i)
		s.models = append(s.models, model)
		from := time.Duration(r.Int64N(int64(within)))
		to := from + 6*time.Second + time.Duration(r.Int64N(int64(8*time.Second)))
		a := alert{name: "VLLMHighTTFT", model: model, periods: []period{{from, to}}}
		b := alert{name: "VLLMQueueGrowing", model: model, periods: []period{{from + 1500*time.Millisecond, to - time.Second}}}
		if i%3 == 0 {
			again := to + 3*time.Second
			a.periods = append(a.periods, period{again, again + 6*time.Second})
		}
		s.alerts = append(s.alerts, a, b)
		for _, p := range a.periods {
			s.length = max(s.length, p.to)
		}
	}
	return s
}

// posted is an alert in Alertmanager's API.
type posted struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

// at lists the alerts that Prometheus would send: those that fire, and for a while those that have ended.
func (s storm) at(begin time.Time, now time.Duration) []posted {
	const resend = 20 * time.Second
	var out []posted
	for _, a := range s.alerts {
		for _, p := range a.periods {
			if now < p.from || now > p.to+resend {
				continue
			}
			x := posted{
				Labels: map[string]string{
					"alertname": a.name, "model_name": a.model, "namespace": "llm", "severity": "warning",
				},
				Annotations:  map[string]string{"summary": a.name + " of " + a.model},
				StartsAt:     begin.Add(p.from),
				EndsAt:       begin.Add(now + time.Minute),
				GeneratorURL: "http://prometheus.example.org/graph?g0.expr=up",
			}
			if now >= p.to {
				x.EndsAt = begin.Add(p.to)
			}
			// A newer period of the same alert replaces the older one.
			if n := len(out); n > 0 && out[n-1].Labels["alertname"] == a.name && out[n-1].Labels["model_name"] == a.model {
				out[n-1] = x
				continue
			}
			out = append(out, x)
		}
	}
	return out
}

// blow sends the storm to the Alertmanagers until it is over and all ends have been told.
func (s storm) blow(ctx context.Context, t *testing.T, alertmanagers []string) {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		now := time.Since(begin)
		if now > s.length+15*time.Second {
			return
		}
		if alerts := s.at(begin, now); len(alerts) > 0 {
			body, err := json.Marshal(alerts)
			if err != nil {
				t.Error(err)
				return
			}
			var wg sync.WaitGroup
			for _, am := range alertmanagers {
				wg.Go(func() {
					if err := post(ctx, am+"/api/v2/alerts", body); err != nil && ctx.Err() == nil {
						t.Logf("alertmanager %s: %v", am, err)
					}
				})
			}
			wg.Wait()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// metrics are the models' metrics in the notation of promqtest: enough for a triage to have something to look at.
func (s storm) metrics() string {
	var b strings.Builder
	b.WriteString("load 15s\n")
	for i, m := range s.models {
		for _, series := range []string{
			fmt.Sprintf(`vllm:num_requests_running{model_name=%q,instance="i%d"} 8x200`, m, i),
			fmt.Sprintf(`vllm:num_requests_waiting{model_name=%q,instance="i%d"} 0x40 50x160`, m, i),
			fmt.Sprintf(`vllm:kv_cache_usage_perc{model_name=%q,instance="i%d"} 0.3x40 0.99x160`, m, i),
		} {
			b.WriteString("  " + series + "\n")
		}
	}
	return b.String()
}
