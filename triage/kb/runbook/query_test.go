package runbook_test

import (
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/promqtest"
	"vllm-triage/triage/kb/runbook"
)

// extraLabels are the labels that vLLM puts on some metrics beside model_name and engine.
var extraLabels = map[string][]string{
	"vllm:num_requests_waiting_by_reason":                {`reason="capacity"`, `reason="deferred"`},
	"vllm:num_requests_kv_fetch_by_stage":                {`stage="in_progress"`},
	"vllm:engine_sleep_state":                            {`sleep_state="awake"`, `sleep_state="weights_offloaded"`},
	"vllm:prompt_tokens_by_source_total":                 {`source="local_compute"`, `source="local_cache_hit"`},
	"vllm:request_success_total":                         {`finished_reason="stop"`, `finished_reason="length"`, `finished_reason="error"`},
	"vllm:admission_rejections_total":                    {`reason="max_num_queued_reqs"`},
	"vllm:spec_decode_num_accepted_tokens_per_pos_total": {`position="0"`, `position="1"`},
	"vllm:cache_config_info":                             {`engine="0",num_gpu_blocks="4790"`, `engine="1",num_gpu_blocks="4790"`},
	"vllm:lora_requests_info":                            {`max_lora="2",running_lora_adapters="a"`, `max_lora="2",running_lora_adapters="a,b"`},
	"http_requests_total":                                {`handler="/v1/completions",status="2xx"`, `handler="/v1/completions",status="5xx"`},
	"kube_pod_container_status_last_terminated_reason":   {`namespace="prod",pod="vllm-0",reason="OOMKilled"`},
	"kube_pod_container_status_restarts_total":           {`namespace="prod",pod="vllm-0"`},
}

// fleet writes every metric of the vocabulary as two replicas with two ranks export it.
func fleet(t *testing.T) string {
	t.Helper()
	data, err := fs.ReadFile(runbook.Embedded(), "metrics/vllm.txt")
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("load 15s\n")
	series := func(name, kind, labels string, rank int) {
		values := fmt.Sprintf("%dx480", rank+1)
		if kind != "gauge" {
			values = fmt.Sprintf("0+%dx480", rank+1)
		}
		labels = strings.Trim(strings.ReplaceAll(labels, ",,", ","), ",")
		fmt.Fprintf(&b, "%s{%s} %s\n", name, labels, values)
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name, kind, scope := words[0], words[1], words[2]
		extras, ok := extraLabels[name]
		if !ok {
			extras = []string{""}
		}
		for _, instance := range []string{"vllm-0:8000", "vllm-1:8000"} {
			target := fmt.Sprintf("job=%q,instance=%q", "vllm", instance)
			if strings.HasPrefix(name, "DCGM") {
				target += `,Hostname="n1",gpu="0"`
			}
			for i, extra := range extras {
				if scope == "target" {
					series(name, kind, target+","+extra, i)
					continue
				}
				for rank := range 2 {
					labels := fmt.Sprintf(`model_name="MODEL",engine="%d",%s,%s`, rank, target, extra)
					if kind != "histogram" {
						series(name, kind, labels, rank+i)
						continue
					}
					for _, le := range []string{"0.1", "1", "+Inf"} {
						series(name+"_bucket", kind, labels+fmt.Sprintf(",le=%q", le), rank)
					}
					series(name+"_sum", kind, labels, rank)
					series(name+"_count", kind, labels, rank)
				}
			}
		}
	}
	return b.String()
}

// The queries of the pages run against a fleet that exports every metric: none matches series many to many, and those
// that filter nothing find something.
func TestQueriesRun(t *testing.T) {
	t.Parallel()
	store, err := promqtest.New(fleet(t))
	require.NoError(t, err)
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true,
		Parser: parser.NewParser(parser.Options{}),
	})
	filters := regexp.MustCompile(`[=><]=? *[01]\b|== `)
	past := regexp.MustCompile(`offset 1[hdw]`) // The fleet is two hours old.
	fence := regexp.MustCompile("(?s)```promql\n(.*?)```")
	at := time.UnixMilli(0).Add(110 * time.Minute)
	ran := 0
	for _, id := range runbook.IDs() {
		for _, m := range fence.FindAllStringSubmatch(source(t, "en", id), -1) {
			text := strings.ReplaceAll(m[1], "{{matchers}}", `model_name="MODEL"`)
			q, err := engine.NewInstantQuery(t.Context(), store, nil, past.ReplaceAllString(text, "offset 20m"), at)
			require.NoError(t, err, "%s: %s", id, text)
			res := q.Exec(t.Context())
			require.NoError(t, res.Err, "%s: %s", id, text)
			warnings, _ := res.Warnings.AsStrings(text, 5, 5)
			require.Empty(t, warnings, "%s: %s", id, text)
			v, err := res.Vector()
			require.NoError(t, err, "%s: %s", id, text)
			if !filters.MatchString(text) {
				require.NotEmpty(t, v, "%s: %s", id, text)
				for _, s := range v {
					require.False(t, math.IsNaN(s.F), "%s: not a number: %s", id, text)
				}
			}
			q.Close()
			ran++
		}
	}
	require.Greater(t, ran, 90)
}
