package sim_test

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vllm-triage/triage"
	"vllm-triage/triage/eval/sim"
	"vllm-triage/triage/kb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment chooses what is asked: "all" every scenario of the table with three seeds, "random 1 200" fleets drawn by the
// seeds 1 to 200, "soon 1 200" the same asked early, anything else the scenarios whose names match it as a shell pattern. Unset is the fast set.
const environment = "VLLM_TRIAGE_SIM"

// fast are the scenarios of every run: each bottleneck, and each trigger, on fleets whose runs are short.
var fast = strings.Fields(`
	quiet-cap-traffic_surge quiet-cap-config_change quiet-kv-longer_prompts quiet-kv-sampling_n quiet-prefill-prefix_cache_collapse
	quiet-slow quiet-front quiet-stall quiet-grammar quiet-lora quiet-aborts quiet-calm quiet-calm-busy quiet-calm-bursts quiet-few
	rag-kv-longer_outputs rag-prefill-longer_prompts rag-lost rag-slow-one rag-uneven rag-stall-one rag-calm-less
	agents-prefill-traffic_surge agents-kv-config_change agents-slow agents-calm-less
	reasoning-decode-traffic_surge`)

// The engine must find what binds servers that its rules were not written for. The floors are what it does now less one
// or two cases, so that one rule that stops holding is noticed.
func TestUnseen(t *testing.T) {
	t.Parallel()
	list, seeds := sim.Scenarios(), []uint64{1}
	choice := os.Getenv(environment)
	words := strings.Fields(choice)
	switch {
	case choice == "":
		list = named(t, list, fast)
	case choice == "all":
		seeds = []uint64{1, 2, 3}
	case words[0] == "random":
		list = drawn(t, sim.Random, words[1:])
	case words[0] == "soon":
		list = drawn(t, sim.Soon, words[1:])
	default:
		list = named(t, list, words)
	}
	var sum sim.Result
	for _, seed := range seeds {
		res, err := sim.Run(t.Context(), kb.Default(), list, seed)
		require.NoError(t, err)
		sum.Answers, sum.Dropped = append(sum.Answers, res.Answers...), append(sum.Dropped, res.Dropped...)
	}
	var table bytes.Buffer
	sum.Write(&table)
	t.Log("\n" + table.String())
	s := sum.Score()
	require.NotZero(t, s.Cases)
	require.LessOrEqual(t, s.FalseCauses, s.Cases/100)
	if choice != "" { // Hundreds of fleets; a handful that somebody names may all be hard.
		least := 0.0
		if s.Cases >= 50 {
			least = 0.92
		}
		require.GreaterOrEqual(t, s.AC1, least)
		require.GreaterOrEqual(t, s.Trigger, least)
		require.LessOrEqual(t, s.ConfidentWrong, 1+s.Cases/30)
	} else {
		require.GreaterOrEqual(t, s.AC1, 0.96)
		require.GreaterOrEqual(t, s.Trigger, 0.92)
		require.InDelta(t, 1, s.Place, 0)
		require.Zero(t, s.ConfidentWrong)
		require.GreaterOrEqual(t, s.Cases, len(fast)-1, "scenarios of the fast set are no longer clear: %v", sum.Dropped)
	}
}

// What was once answered wrongly soon after a fault: a replica whose clients leave one by one, a batch that slow steps fill,
// a prefix cache that has less of each prompt.
func TestOnceWrongSoonAfter(t *testing.T) {
	t.Parallel()
	for seed, first := range map[uint64]string{8250: "engine_stalled", 8263: "device_slowdown", 8372: "prefill_bound"} {
		p := sim.Soon(seed).Play(1)
		require.Equal(t, first, p.Scenario.Bottleneck)
		rep, err := sim.Ask(t.Context(), kb.Default(), p)
		require.NoError(t, err)
		require.Equal(t, first, rep.Bottlenecks[0].ID, "seed %d", seed)
	}
}

// A replica is lost while traffic is at its lowest of the hour: the others do not get more than they had on average, but
// more than just before.
func TestALossIsJudgedByTheMinutesBesideIt(t *testing.T) {
	t.Parallel()
	p := sim.Random(8762).Play(1)
	require.Equal(t, "replica_down", p.Scenario.Bottleneck)
	rep, err := sim.Ask(t.Context(), kb.Default(), p)
	require.NoError(t, err)
	require.Equal(t, "replica_down", rep.Bottlenecks[0].ID)
	require.Equal(t, "replica_loss", rep.Triggers[0].ID)
}

// An engine that hangs while it is idle freezes its gauges at zero: all that shows is that it takes no part any more.
func TestASilentReplicaIsNotCalm(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{5065, 5073} {
		p := sim.Soon(seed).Play(1)
		require.Equal(t, "engine_stalled", p.Scenario.Bottleneck)
		rep, err := sim.Ask(t.Context(), kb.Default(), p)
		require.NoError(t, err)
		require.Equal(t, triage.Inconclusive, rep.Verdict)
		require.NotNil(t, rep.Inconclusive)
		require.Contains(t, rep.Inconclusive.Text.Text, "produce nothing", "%+v", rep.Inconclusive)
	}
}

func named(t *testing.T, list []sim.Scenario, patterns []string) []sim.Scenario {
	t.Helper()
	var out []sim.Scenario
	for _, p := range patterns {
		n := len(out)
		for _, sc := range list {
			ok, err := path.Match(p, sc.Name)
			require.NoError(t, err)
			if ok {
				out = append(out, sc)
			}
		}
		require.Greater(t, len(out), n, "no scenario is called %q", p)
	}
	return out
}

func drawn(t *testing.T, draw func(seed uint64) sim.Scenario, bounds []string) []sim.Scenario {
	t.Helper()
	require.Len(t, bounds, 2, "%s=random FROM TO, or soon FROM TO", environment)
	from, err := strconv.ParseUint(bounds[0], 10, 32)
	require.NoError(t, err)
	to, err := strconv.ParseUint(bounds[1], 10, 32)
	require.NoError(t, err)
	var out []sim.Scenario
	for seed := from; seed <= to; seed++ {
		out = append(out, draw(seed))
	}
	return out
}
