package web

import (
	"time"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// maxQueries is how many queries a page lists. A triage makes at most 90.
const maxQueries = 200

// maxQuery is how long a query of a message is at most, in characters.
const maxQuery = 4000

type queryList struct {
	Rows    []queryRow
	Summary string
	More    string
}

type queryRow struct {
	notify.Query
	Tone string
	Took string
	Why  string // What Prometheus said against it.
}

// queries lists what was asked, with the outcome and the time that it took.
func (p *incidentPage) queries(r triage.Report) queryList {
	records := map[string]triage.QueryRecord{}
	for _, q := range r.QueryLog {
		promQL := notify.Clean(q.Query, maxQuery)
		if _, taken := records[promQL]; !taken {
			records[promQL] = q
		}
	}
	var out queryList
	failed := 0
	for i, q := range p.M.Queries {
		if i == maxQueries {
			out.More = p.T("and_more", "n", locale.Grouped(len(p.M.Queries)-maxQueries))
			break
		}
		row := queryRow{Query: q}
		if rec, known := records[q.PromQL]; known {
			row.Outcome, row.Tone = p.outcome(rec.Outcome)
			row.Took = p.f.Duration(time.Duration(rec.DurationMS) * time.Millisecond)
			row.Why = notify.Clean(rec.Error, maxText)
			if row.Tone == toneBad {
				failed++
			}
		}
		out.Rows = append(out.Rows, row)
	}
	out.Summary = p.N("queries.count", len(p.M.Queries))
	if failed > 0 {
		out.Summary += " · " + p.N("queries.failed", failed)
	}
	return out
}

// outcome is the words and the colour of a query's outcome.
func (p page) outcome(outcome string) (text, tone string) {
	switch outcome {
	case "value":
		return p.T("outcome.value"), toneGood
	case "empty":
		return p.T("outcome.empty"), ""
	case "partial":
		return p.T("outcome.partial"), toneWarn
	case "error":
		return p.T("outcome.error"), toneBad
	default:
		return clean(outcome), ""
	}
}
