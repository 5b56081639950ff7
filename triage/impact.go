package triage

import (
	"math"
)

// impact says what users feel.
func impact(o *observations, args map[string]Arg) Impact {
	var im Impact
	for _, id := range []string{"ttft_p95", "itl_p95", "e2e_p95"} {
		now, before := o.feature(id, "level"), o.feature(id, "base")
		x := o.get(id)
		switch {
		case math.IsNaN(now):
		case !math.IsNaN(o.feature(id, "high")) && x.values == nil && (math.IsNaN(before) || now > before):
			im.Lines = append(im.Lines, text("impact.at_least", "{signal} at least {during}: the histogram ends there",
				word("signal", x.sig.Title), number("during", now, x.sig.Unit)))
		case math.IsNaN(before):
			im.Lines = append(im.Lines, text("impact.now", "{signal} {during}", word("signal", x.sig.Title), number("during", now, x.sig.Unit)))
		case now >= 1.5*before+x.sig.Floor:
			im.Lines = append(im.Lines, text("impact.change", "{signal} {before} → {during}", word("signal", x.sig.Title),
				number("before", before, x.sig.Unit), number("during", now, x.sig.Unit)))
		}
	}
	if n, ok := args["requests_affected"]; ok && n.Number != nil && *n.Number >= 1 {
		im.Lines = append(im.Lines, text("impact.requests", "about {requests_affected} requests started or waited since the onset",
			textArg{"requests_affected", n}))
	}
	return im
}
