package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// Five hundred incidents begin within a minute and all go to one channel, which takes one message a second. Each ends with
// one message that shows its newest state; none is lost, none is posted twice, and the channel's limit is kept.
func TestStorm(t *testing.T) {
	t.Parallel()
	n := 500
	if raced {
		n = 100
	}
	chat := &paced{clock: &clock{at: begin}, shown: map[string]string{}, posts: map[string]int{}}
	w := newWorld(t, setup{notifier: chat, clock: chat.clock, sections: map[string]string{
		"triage": "{retriage: [], max_age: 30d}", "routes": "[{thread: false}]",
	}})
	batch := func(name string, from, to int) {
		var alerts []alert
		for i := from; i < to; i++ {
			alerts = append(alerts, alert{name: name, model: fmt.Sprint("m", i)})
		}
		w.notify(alerts...)
	}
	for i := 0; i < n; i += 10 {
		batch("TTFT", i, i+10)
		w.clock.set(w.clock.now().Add(time.Second))
	}
	for i := 0; i < n/2; i += 50 { // Half of them are joined by another alert before anybody was told.
		batch("Queue", i, i+50)
	}
	w.pass(time.Duration(5*n) * time.Second)
	for i, at := range chat.said[1:] {
		require.GreaterOrEqual(t, at.Sub(chat.said[i]), time.Second)
	}
	require.LessOrEqual(t, len(chat.said), 3*n, "what waits is merged")
	require.Len(t, chat.shown, n)
	for id, posts := range chat.posts {
		require.Equal(t, 1, posts, id)
	}
	incidents, err := w.store.Incidents(t.Context(), store.Filter{Limit: 500})
	require.NoError(t, err)
	require.Len(t, incidents, n)
	for _, in := range incidents {
		want := "1 alert fires"
		var number int
		_, err := fmt.Sscanf(in.Scope.Model, "m%d", &number)
		require.NoError(t, err)
		if number < n/2 {
			want = "2 alerts fire"
		}
		require.True(t, strings.HasPrefix(chat.shown[in.ID], want), "%s shows %q", in.Scope.Model, chat.shown[in.ID])
	}
	waiting, err := w.store.PendingConversations(t.Context())
	require.NoError(t, err)
	require.Empty(t, waiting)
	require.InDelta(t, 0, w.metric(`vllm_triage_lost_total{what="expired"}`), 0)
}

// paced is a chat with one channel. Like the notifier of Slack it waits for the channel's turn, a second after the last
// message, by the test's clock.
type paced struct {
	clock *clock
	said  []time.Time
	shown map[string]string
	posts map[string]int
}

func (*paced) Name() string { return "paced" }

func (p *paced) turn(m notify.Message) error {
	if n := len(p.said); n > 0 && p.clock.now().Before(p.said[n-1].Add(time.Second)) {
		p.clock.set(p.said[n-1].Add(time.Second))
	}
	p.said = append(p.said, p.clock.now())
	p.shown[m.IncidentID] = m.AlertsText
	return nil
}

func (p *paced) Post(_ context.Context, channel string, m notify.Message) (notify.Ref, error) {
	if err := p.turn(m); err != nil {
		return notify.Ref{}, err
	}
	p.posts[m.IncidentID]++
	return notify.Ref{Channel: channel, ID: m.IncidentID}, nil
}

func (p *paced) Update(_ context.Context, _ notify.Ref, m notify.Message) error { return p.turn(m) }

func (p *paced) Reply(_ context.Context, ref notify.Ref, m notify.Message) (notify.Ref, error) {
	return notify.Ref{Channel: ref.Channel, ID: ref.ID + string(m.Kind)}, p.turn(m)
}

// Slack says no for a while: however many changes come meanwhile, one message tells the newest.
func TestOutageIsNotReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.engine.says(func(n int, _ triage.Incident) (triage.Report, error) {
		r := over()
		r.Verdict = triage.CauseFound
		r.Bottlenecks[0].ID = []string{"prefill_bound", "decode_bound", "kv_cache_exhaustion"}[n%3]
		return r, nil
	})
	w.slack.Inject(fakeslack.Fault{Method: "chat.postMessage", Status: 503, Times: 4})
	w.notify(alert{name: "TTFT"})
	for i := range 5 {
		w.pass(3 * time.Second)
		w.notify(alert{name: fmt.Sprint("B", i), start: time.Duration(i) * 5 * time.Second})
	}
	w.pass(3 * time.Minute)
	require.Equal(t, 1, w.posts(notify.KindCard))
	require.Contains(t, said(w.card()), "6 alerts fire")
}
