package notifytest

import (
	"time"

	"vllm-triage/triage"
)

// cause is a plain report of one bottleneck.
type cause struct {
	name, bottleneck, trigger string
	p, q                      float64
	where                     []triage.Place
	severity                  string
	evidence                  []triage.Evidence
	action                    triage.Action
}

func (c cause) report() triage.Report {
	onset := Now().Add(-5*time.Minute - 10*time.Second)
	r := base(c.bottleneck, c.p, c.trigger, c.q, onset)
	r.Bottlenecks[0].Where = c.where
	r.Bottlenecks[0].Since = onset
	r.Bottlenecks[0].Evidence = c.evidence
	r.Bottlenecks[0].Actions = []triage.Action{c.action}
	severity := c.severity
	if severity == "" {
		severity = "warning"
	}
	r.Incident.Alerts = []triage.Alert{alert("VLLMHighTTFT", severity, -2*time.Minute)}
	return r
}

func one(instance string) []triage.Place {
	return []triage.Place{{Instance: instance, Pod: "vllm-demo-1"}}
}

// causes holds one report for every bottleneck of the knowledge base that the bigger cases do not show.
func causes() []cause {
	return []cause{
		{
			name: "cap-traffic-surge", bottleneck: "concurrency_cap", trigger: "traffic_surge", p: 0.88, q: 0.92,
			evidence: []triage.Evidence{
				row("running", 31, 96, triage.Requests, true, 2.2, "cap.plateau", "running is flat at 96", `sum(vllm:num_requests_running)`),
				row("kv_usage", 0.2, 0.58, triage.Ratio, true, 1.0, "cap.room", "the cache has room: 58 %", `avg(vllm:kv_cache_usage_perc)`),
			},
			action: action("raise_cap", "Raise the cap: 4.9 req/s × 31 s need 152 slots, the cap is 96", "--max-num-seqs", "each step serves more requests: ITL grows by about 20 %"),
		},
		{
			name: "prefill-prefix-collapse", bottleneck: "prefill_bound", trigger: "prefix_cache_collapse", p: 0.82, q: 0.79,
			evidence: []triage.Evidence{
				row("prompt_tokens_computed", 610, 5210, triage.TokensPerSec, true, 2.0, "prefill.plateau", "prompts are computed at the plateau", `x`),
				row("itl", 0.034, 1.9, triage.Seconds, true, 1.4, "prefill.itl", "ITL grew 56×", `y`),
			},
			action: action("restore_prefix", "Restore the shared prompt prefix: the hit ratio fell from 82 % to 1 %", "", ""),
		},
		{
			name: "decode-traffic-surge", bottleneck: "decode_bound", trigger: "traffic_surge", p: 0.74, q: 0.81,
			evidence: []triage.Evidence{row("itl", 0.03, 0.21, triage.Seconds, true, 1.8, "decode.itl", "ITL grew 7× with the batch", `x`)},
			action:   action("replicas", "Add 2 replicas: generation is at its plateau of 1.3k tok/s", "", "2 more GPUs"),
		},
		{
			name: "device-slow", bottleneck: "device_slowdown", trigger: "none", p: 0.77, q: 0.83, severity: "critical",
			where: one("10.42.0.11:8000"),
			evidence: []triage.Evidence{
				row("generation_tokens", 1310, 240, triage.TokensPerSec, true, 2.3, "device.slower", "tokens/s fell while running rose", `x`),
			},
			action: action("drain", "Drain vllm-demo-1 and look at its GPU: clocks, XID errors, neighbours", "", "one third of the capacity"),
		},
		{
			name: "engine-stall", bottleneck: "engine_stalled", trigger: "none", p: 0.95, q: 0.9, severity: "critical",
			where:    one("10.42.0.11:8000"),
			evidence: []triage.Evidence{row("generation_tokens", 900, 0, triage.TokensPerSec, true, 3.5, "stall.frozen", "no token for 90 s with 31 requests running", `x`)},
			action:   action("restart", "Restart vllm-demo-1 after saving its stack (py-spy dump)", "", "its running requests fail"),
		},
		{
			name: "frontend-cpu", bottleneck: "frontend_bound", trigger: "traffic_surge", p: 0.66, q: 0.7,
			evidence: []triage.Evidence{row("api_cpu", 0.31, 0.99, triage.Cores, true, 1.9, "frontend.cpu", "the API process uses a whole core", `x`)},
			action:   action("api_servers", "Start more API processes", "--api-server-count", "memory for each"),
		},
		{
			name: "lora-slots", bottleneck: "lora_slots", trigger: "adapter_mix", p: 0.81, q: 0.62,
			evidence: []triage.Evidence{row("waiting_deferred", 0, 44, triage.Requests, true, 2.0, "lora.deferred", "44 requests are deferred", `x`)},
			action:   action("max_loras", "Raise the number of adapter slots from 4 to 8", "--max-loras", "GPU memory for each slot"),
		},
		{
			name: "grammar-compile", bottleneck: "structured_output", trigger: "structured_output_mix", p: 0.63, q: 0.55,
			evidence: []triage.Evidence{row("waiting_deferred", 0, 12, triage.Requests, true, 1.5, "grammar.deferred", "12 requests are deferred, no LoRA in use", `x`)},
			action:   action("schemas", "Ask clients for fewer distinct schemas; each new one is compiled", "", ""),
		},
		{
			name: "replica-crash", bottleneck: "replica_down", trigger: "replica_loss", p: 0.97, q: 0.88, severity: "critical",
			where:    one("10.42.0.11:8000"),
			evidence: []triage.Evidence{row("up", 3, 2, triage.Count, true, 4, "up.lost", "2 of 3 replicas answer", `sum(up{job="vllm"})`)},
			action:   action("pod", "Look at the pod: kubectl -n llm describe pod vllm-demo-1", "", ""),
		},
		{
			name: "replica-imbalance", bottleneck: "replica_imbalance", trigger: "routing_change", p: 0.72, q: 0.65,
			where: []triage.Place{{Instance: "10.42.0.11:8000", Engine: "0"}, {Instance: "10.42.0.11:8000", Engine: "3"}},
			evidence: []triage.Evidence{
				row("running", 30, 88, triage.Requests, true, 1.7, "imbalance.skew", "88 run here, 9 on the others", `x`),
			},
			action: action("routing", "Look at the gateway's balancing: one replica gets 84 % of the requests", "", ""),
		},
		{
			name: "client-aborts", bottleneck: "client_aborts", trigger: "longer_outputs", p: 0.61, q: 0.58,
			evidence: []triage.Evidence{row("finished", 2, 0.1, triage.RequestsPerSec, true, 1.6, "aborts.few", "2 req/s get a first token, 0.1 req/s finish", `x`)},
			action:   action("timeouts", "Compare the clients' time-outs with the latency of 48 s", "", ""),
		},
		{
			name: "errors", bottleneck: "request_errors", trigger: "config_change", p: 0.7, q: 0.8,
			evidence: []triage.Evidence{row("http_5xx", 0, 1.2, triage.RequestsPerSec, true, 2.0, "errors.5xx", "1.2 req/s end in HTTP 5xx", `x`)},
			action:   action("rollback", "Roll back the change of 14:03: vLLM went from 0.31 to 0.32", "", ""),
		},
	}
}
