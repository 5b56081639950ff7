//go:build crash

package crash_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/promq/programtest"
	"vllm-triage/promq/promqtest"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
	"vllm-triage/triage/store/storetest"
)

var (
	crashes = flag.Int("crashes", 200, "how often to kill the program, on each engine")
	other   = flag.String("other", "", "binary of another version for every second replica: a rolling upgrade, side by side")
	seed    = flag.Uint64("seed", 0, "of the random instants; 0 takes the time")
)

func stopPostgres() { storetest.Stop() }

func TestSQLite(t *testing.T) { crash(t, storetest.SQLite(t), 1) }

func TestPostgresTwoReplicas(t *testing.T) { crash(t, storetest.Postgres(t), 2) }

const (
	token = "crash-0123456789abcdef"
	// debounce is triage.debounce of the service.
	debounce = 300 * time.Millisecond
)

// service writes the configuration of one replica of a program.
func service(t *testing.T, program, storage, listen, prometheus, slack string) *process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`
server: {listen: %q}
webhook: {bearer_token: %s}
storage: %q
prometheus: {url: %q}
slack: {bot_token: xoxb-crash, api_url: "%s/api/", channel: %s, timeout: 2s}
triage: {debounce: %s, edit_interval: 500ms, retriage: [10s]}
heartbeat: {alertnames: []}
`, listen, token, storage, prometheus, slack, fakeslack.DefaultChannel, debounce)), 0o600))
	return prepare(t, program, "serve", "--config", path)
}

// alertmanager starts an Alertmanager that posts to an address.
func alertmanager(t *testing.T, webhook string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alertmanager.yml")
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`
route: {receiver: triage, group_by: [model_name, namespace], group_wait: 200ms, group_interval: 1s, repeat_interval: 4h}
receivers:
  - name: triage
    webhook_configs:
      - url: %s/webhook/alertmanager
        http_config: {authorization: {credentials: %s}}
`, webhook, token)), 0o600))
	listen := programtest.FreeAddress(t)
	p := prepare(t, "prometheus-alertmanager", "--config.file="+path, "--storage.path="+t.TempDir(),
		"--web.listen-address="+listen, "--cluster.listen-address=")
	p.start(t)
	eventually(t, 20*time.Second, "alertmanager is ready", func() bool { return answers(t, "http://"+listen+"/-/ready") })
	return "http://" + listen
}

func crash(t *testing.T, storage string, replicas int) {
	t.Helper()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d crashes", *seed, *crashes)
	r := rand.New(rand.NewPCG(*seed, 1))
	// A crash and the restart after it take a second or two.
	s := newStorm(r, max(*crashes/3, 6), time.Duration(*crashes)*1500*time.Millisecond)

	slack := fakeslack.New(fakeslack.Options{Token: "xoxb-crash"})
	slackURL, stopSlack, err := slack.Listen(t.Context())
	require.NoError(t, err)
	t.Cleanup(stopSlack)
	prometheus := promqtest.Load(t, s.metrics(), promqtest.StartAt(time.Now().Add(-10*time.Minute)))

	var replica []*process
	var addresses []string
	current, err := binary()
	require.NoError(t, err)
	for i := range replicas {
		address := programtest.FreeAddress(t)
		version := current
		if i%2 == 1 && *other != "" {
			version = *other
		}
		addresses = append(addresses, address)
		replica = append(replica, service(t, version, storage, address, prometheus.URL(), slackURL))
	}
	for _, p := range replica {
		p.start(t)
	}
	ready := func() bool {
		for _, a := range addresses {
			if !answers(t, "http://"+a+"/-/ready") {
				return false
			}
		}
		return true
	}
	eventually(t, 30*time.Second, "the service is ready", ready)
	taken := &accepted{models: map[string]bool{}}
	lb := balancer(t, addresses, taken)
	managers := []string{alertmanager(t, lb), alertmanager(t, lb)}

	var wg sync.WaitGroup
	var over atomic.Bool
	wg.Go(func() { s.blow(t.Context(), t, managers) })
	wg.Go(func() { misbehave(slack, rand.New(rand.NewPCG(*seed, 2)), &over) })
	for range *crashes {
		i := r.IntN(len(replica))
		p := replica[i]
		// One of four is killed at any instant, its start included; the others have come up first. On a busy machine, where a
		// start takes longer than the time to the next kill, the storm would hit closed doors only.
		if r.IntN(4) > 0 {
			eventually(t, 60*time.Second, "the service is ready", func() bool { return answers(t, "http://"+addresses[i]+"/-/ready") })
		}
		time.Sleep(time.Duration(50+r.IntN(1200)) * time.Millisecond)
		p.kill()
		p.start(t)
	}
	over.Store(true)
	wg.Wait()
	eventually(t, 30*time.Second, "the service is ready", ready)

	kept, err := store.Open(t.Context(), storage, store.Options{Existing: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, kept.Close()) }()
	tally := func() result { return count(slack, s, taken, overWhenHeard(t, kept, len(s.models))) }
	// A channel takes a message a second, so the rest takes as long as it takes; a service that has stopped telling has not.
	verdict := tally()
	said, since := told(slack), time.Now()
	for (verdict.lost > 0 || !idle(t, kept)) && time.Since(since) < time.Minute {
		time.Sleep(time.Second)
		if n := told(slack); n != said {
			said, since = n, time.Now()
		}
		verdict = tally()
	}
	// Nothing more may come: a duplicate that is only late is one all the same.
	time.Sleep(3 * time.Second)
	verdict = tally()
	fmt.Printf("%s: %d crashes, %d incidents: lost %d, duplicated %d (replies twice: %d, never delivered by Alertmanager: %d, "+
		"over when first heard of: %d)\n",
		t.Name(), *crashes, len(s.models), verdict.lost, verdict.duplicated, verdict.replies, verdict.untold, verdict.over)
	require.Empty(t, verdict.problems)
	require.Zero(t, verdict.lost)
	require.Zero(t, verdict.duplicated)
	require.Less(t, verdict.untold+verdict.over, max(len(s.models)/2, 1), "the storm must reach the service")
	require.Empty(t, slack.Violations())
	require.True(t, idle(t, kept))
	jobs, err := kept.DeadJobs(t.Context())
	require.NoError(t, err)
	require.Empty(t, jobs)
	messages, err := kept.DeadConversations(t.Context())
	require.NoError(t, err)
	require.Empty(t, messages)
}

// told counts the attempts to tell something.
func told(slack *fakeslack.Server) (n int) {
	for _, c := range slack.Calls() {
		if strings.HasPrefix(c.Method, "chat.") {
			n++
		}
	}
	return n
}

// idle says whether nothing waits to be told.
func idle(t *testing.T, s *store.Store) bool {
	t.Helper()
	pending, err := s.PendingConversations(t.Context())
	require.NoError(t, err)
	return len(pending) == 0
}

// overWhenHeard are the models whose incident ended within the debounce time of the first notification of it that got through,
// however long it had lasted: it was triaged, is on the pages and is not posted. That happens when the service was away until
// just before the end.
func overWhenHeard(t *testing.T, s *store.Store, limit int) map[string]bool {
	t.Helper()
	incidents, err := s.Incidents(t.Context(), store.Filter{Limit: min(2*limit, 500)})
	require.NoError(t, err)
	over := map[string]bool{}
	for _, in := range incidents {
		short := in.Status == triage.StatusResolved && !in.ResolvedAt.After(in.OpenedAt.Add(debounce))
		over[in.Scope.Model] = short && in.Revision > 0
	}
	return over
}

// misbehave makes Slack fail in every way it knows, until the crashes are over.
func misbehave(slack *fakeslack.Server, r *rand.Rand, over *atomic.Bool) {
	faults := []fakeslack.Fault{
		{Status: http.StatusTooManyRequests, RetryAfter: "1"},
		{Status: http.StatusTooManyRequests},
		{Status: http.StatusInternalServerError},
		{Status: http.StatusServiceUnavailable},
		{Error: "internal_error"},
		{Error: "ratelimited"},
		{Method: "chat.postMessage", Drop: true},
		{Method: "chat.postMessage", Hang: true},
		{Method: "chat.update", Drop: true},
		{Method: "conversations.history", Status: http.StatusServiceUnavailable},
	}
	for !over.Load() {
		slack.Inject(faults[r.IntN(len(faults))])
		time.Sleep(time.Duration(200+r.IntN(1500)) * time.Millisecond)
	}
}

// result is what Slack shows in the end.
type result struct {
	lost, duplicated, replies int
	untold                    int // Never taken from Alertmanager.
	over                      int // Kept and, as the product has it, not posted.
	problems                  []string
}

// count compares what Slack shows with what has happened: one message for each model, and it says that it is over.
func count(slack *fakeslack.Server, s storm, taken *accepted, over map[string]bool) result {
	var out result
	roots := map[string][]fakeslack.Message{}
	for _, m := range slack.Roots(fakeslack.DefaultChannel) {
		for _, model := range s.models {
			if strings.Contains(m.Text, model) {
				roots[model] = append(roots[model], m)
			}
		}
	}
	for _, model := range s.models {
		found := roots[model]
		switch {
		case len(found) == 0 && !taken.has(model):
			out.untold++
			continue
		case len(found) == 0 && over[model]:
			out.over++
			continue
		case len(found) == 0:
			out.lost++
			out.problems = append(out.problems, model+": no message")
			continue
		case len(found) > 1:
			out.duplicated += len(found) - 1
			out.problems = append(out.problems, fmt.Sprintf("%s: %d messages", model, len(found)))
		}
		if !strings.Contains(found[0].Text, "Resolved") {
			out.lost++
			out.problems = append(out.problems, fmt.Sprintf("%s: does not show its end: %.80s", model, found[0].Text))
		}
		details := 0
		for _, reply := range slack.Thread(fakeslack.DefaultChannel, found[0].TS) {
			if reply.Kind() == "details" {
				details++
			}
		}
		out.replies += max(details-1, 0)
	}
	return out
}
