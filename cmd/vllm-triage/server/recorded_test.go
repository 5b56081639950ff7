package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/promq"
	"vllm-triage/promq/recording"
	"vllm-triage/triage"
)

// incidents are recordings of real vLLM servers, with what Alertmanager sent.
const incidents = "../../../triage/testdata/incidents"

// recorded is one notification and when it came.
type recorded struct {
	body []byte
	at   time.Time
}

// replayed is the engine over a recording. At each question it sees what the recorded Prometheus had at that moment.
type replayed struct {
	recording *recording.Recording
}

// Triage implements server.Triager.
func (r replayed) Triage(ctx context.Context, in triage.Incident) (triage.Report, error) {
	client, err := promq.NewClient(promq.Config{URL: "http://recorded", RoundTripper: r.recording.RoundTripper(in.Now)})
	if err != nil {
		return triage.Report{}, err
	}
	return triage.NewEngine(knowledge(), client, triage.Options{}).Triage(ctx, in)
}

// load reads a recording and its notifications.
func load(t *testing.T, name string) (replayed, []recorded) {
	t.Helper()
	dir := filepath.Join(incidents, name)
	raw, err := os.ReadFile(filepath.Join(dir, "recording.json"))
	require.NoError(t, err)
	var meta struct {
		Webhooks []struct {
			File       string    `json:"file"`
			ReceivedAt time.Time `json:"received_at"`
		} `json:"webhooks"`
	}
	require.NoError(t, json.Unmarshal(raw, &meta))
	var out []recorded
	for _, w := range meta.Webhooks {
		body, err := os.ReadFile(filepath.Join(dir, "webhooks", w.File))
		require.NoError(t, err)
		out = append(out, recorded{body, w.ReceivedAt})
	}
	rec, err := recording.Open(filepath.Join(dir, "tsdb"))
	require.NoError(t, err)
	return replayed{rec}, out
}

// resolvedAfter is the last notification with its alerts ended: the recordings stop before everything is over.
func resolvedAfter(t *testing.T, webhooks []recorded, later time.Duration) []recorded {
	t.Helper()
	at := webhooks[len(webhooks)-1].at.Add(later)
	ended := map[string]template.Alert{}
	var frame triage.Payload
	for _, w := range webhooks {
		p, err := triage.ParsePayload(w.body)
		require.NoError(t, err)
		frame = p
		for _, a := range p.Alerts {
			ended[a.Fingerprint] = a
		}
	}
	frame.Alerts, frame.Status = nil, triage.StatusResolved
	for _, fingerprint := range slices.Sorted(maps.Keys(ended)) {
		a := ended[fingerprint]
		if a.Status == triage.StatusFiring {
			a.Status, a.EndsAt = triage.StatusResolved, at.Add(-10*time.Second)
		}
		frame.Alerts = append(frame.Alerts, a)
	}
	body, err := json.Marshal(frame)
	require.NoError(t, err)
	return append(slices.Clone(webhooks), recorded{body, at})
}

// play delivers notifications at their times, with the clock running as fast as it can.
func (w *world) play(webhooks []recorded) {
	w.t.Helper()
	for _, x := range webhooks {
		if d := x.at.Sub(w.clock.now()); d > 0 {
			w.pass(d)
		}
		w.deliver(x.body)
	}
	w.pass(time.Minute)
}

// A recorded incident's whole life: one message, edited while it goes on, with its thread, its picture and its end. Two
// Alertmanagers that deliver everything twice and out of order make the same single message.
func TestRecordedIncident(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kv-longer-outputs-a", "prefill-longer-prompts-a"} {
		if raced && name != "kv-longer-outputs-a" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, webhooks := load(t, name)
			webhooks = resolvedAfter(t, webhooks, 4*time.Minute)

			once := newWorld(t, setup{triager: engine, pictures: true, clock: &clock{at: webhooks[0].at}})
			once.play(webhooks)
			card := once.card()
			require.Contains(t, card.Text, "Resolved")
			require.NotEmpty(t, card.Edits)
			require.NotContains(t, card.Edits[0].Text, "Resolved", "it was told while it went on")
			for i, e := range card.Edits[1:] {
				require.GreaterOrEqual(t, e.At.Sub(card.Edits[i].At), 30*time.Second)
			}
			thread := once.thread()
			require.Equal(t, "details", thread[0])
			require.Contains(t, thread, "picture")
			require.Len(t, once.replies(notify.KindResolved), once.incident().Flaps+1, "each end is said once")
			require.Empty(t, once.slack.Violations())

			var twice []recorded
			for i, x := range webhooks {
				twice = append(twice, x, recorded{x.body, x.at.Add(700 * time.Millisecond)})
				if i > 0 { // The second peer is behind: it sends what came before once more.
					twice = append(twice, recorded{webhooks[i-1].body, x.at.Add(900 * time.Millisecond)})
				}
			}
			slices.SortStableFunc(twice, func(a, b recorded) int { return a.at.Compare(b.at) })
			both := newWorld(t, setup{triager: engine, pictures: true, clock: &clock{at: webhooks[0].at}})
			both.play(twice)
			require.Equal(t, card.Text, both.card().Text)
			require.Equal(t, once.incident().ID, both.incident().ID)
			require.Equal(t, once.incident().Flaps, both.incident().Flaps)
			require.Len(t, both.replies(notify.KindResolved), both.incident().Flaps+1)
		})
	}
}

// Whatever order the notifications of one moment come in, one message comes out of them.
func TestAnyOrderIsOneMessage(t *testing.T) {
	t.Parallel()
	engine, webhooks := load(t, "kv-longer-outputs-a")
	r := rand.New(rand.NewPCG(1, 2))
	last := webhooks[len(webhooks)-1].at
	for range 3 {
		shuffled := slices.Concat(webhooks, webhooks)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		w := newWorld(t, setup{triager: engine, clock: &clock{at: last}})
		for _, x := range shuffled {
			w.deliver(bytes.Clone(x.body))
		}
		w.pass(time.Minute)
		require.Equal(t, triage.StatusFiring, w.incident().Status)
		require.NotEmpty(t, w.card().TS)
		require.Equal(t, 1, w.posts(notify.KindCard))
	}
}
