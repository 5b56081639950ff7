package runbook_test

import (
	"fmt"
	"testing"

	"vllm-triage/triage/kb/runbook"
)

func TestShow(t *testing.T) {
	p, _ := runbook.Get("en", "kv_cache_exhaustion")
	h, err := p.Render(nil)
	fmt.Println(h, err)
	h, err = p.Render(&runbook.Filling{Scope: "<b>llama</b>[x](http://evil) `a`", Since: "14:02", Numbers: map[string]map[string]string{"kv_usage": {"during": "98%"}, "waiting": {"during": "31"}}, Matchers: `model_name="a<b>",namespace="x"`})
	fmt.Println(string(h)[:2500], err)
	fmt.Printf("%+v\n", p.Steps[2])
}
