package notify

import (
	"slices"
	"strings"

	"vllm-triage/notify/locale"
	"vllm-triage/triage"
)

// namedPlaces is how many places a line names before it counts.
const namedPlaces = 3

// where says in which replicas the cause is at home.
func (b *builder) where(m *Message) {
	if b.told.Verdict != triage.CauseFound {
		return
	}
	p := b.places(first(b.told.Bottlenecks).Where)
	m.Places, m.MorePlaces = p.names, p.count-len(p.names)
	total := b.told.Incident.Replicas
	switch {
	case p.count == 0 && total > 1, p.hosts > 1 && p.hosts == total && p.count == total:
		m.Where = b.words.Count("ui.where.all", total)
	case p.count == 0:
		m.Where = ""
	case total > 1 && p.hosts > 0 && p.hosts < total:
		m.Where = b.words.Count("ui.where.some", p.hosts, "total", locale.Grouped(total), "list", b.list(p))
	default:
		m.Where = b.list(p)
	}
}

// places are the different places of a cause.
type places struct {
	count, hosts int
	names, short []string // The first MaxPlaces, in full and in short.
}

func (b *builder) places(where []triage.Place) places {
	var out places
	if !slices.ContainsFunc(where, func(p triage.Place) bool { return p.Engine != "" && p.Engine != "0" }) {
		// Without data parallelism there is only engine 0, which says nothing.
		where = slices.Clone(where)
		for i := range where {
			where[i].Engine = ""
		}
	}
	seen, hosts := map[triage.Place]bool{}, map[[2]string]bool{}
	for _, p := range where {
		if p.Instance == "" && p.Engine == "" && p.Pod == "" && p.Model == b.told.Incident.Scope.Model {
			continue // The whole scope.
		}
		if p.Instance != "" || p.Pod != "" {
			p.Model = "" // Not part of the name.
			hosts[[2]string{p.Instance, p.Pod}] = true
		}
		if seen[p] {
			continue
		}
		seen[p] = true
		out.count++
		if out.count > MaxPlaces {
			continue
		}
		out.names = append(out.names, b.place(p))
		if p.Pod != "" {
			p.Instance = ""
		}
		out.short = append(out.short, b.place(p))
	}
	out.hosts = len(hosts)
	return out
}

func (b *builder) place(p triage.Place) string {
	instance, pod, engine := Clean(p.Instance, maxName), Clean(p.Pod, maxName), Clean(p.Engine, maxName)
	name := instance
	switch {
	case pod != "" && instance != "":
		name = b.words.Fill("ui.where.pod", "pod", pod, "instance", instance)
	case pod != "":
		name = pod
	}
	switch {
	case engine != "" && name != "":
		return b.words.Fill("ui.where.engine", "instance", name, "engine", engine)
	case engine != "":
		return b.words.Fill("ui.where.engine_only", "engine", engine)
	case name != "":
		return name
	default:
		return Clean(p.Model, maxName)
	}
}

// list names the first few and counts the rest.
func (b *builder) list(p places) string {
	if p.count <= namedPlaces {
		return strings.Join(p.short, ", ")
	}
	return b.words.Fill("ui.more",
		"list", strings.Join(p.short[:namedPlaces], ", "), "n", locale.Grouped(p.count-namedPlaces))
}
