package store

// period is a stretch of time in which an alert fires, in milliseconds. An open one has no end yet.
type period struct {
	firing     bool
	start, end int64
}

// effect is what a notification does to an alert.
type effect int

const (
	unchanged effect = iota
	began            // It fires and did not before.
	ended            // It fired and has ended.
	doubted          // It is said to fire, within a period that is known to have ended.
)

// mergeAlert merges what a notification says of an alert into what is known of it (nil: nothing). Notifications may come
// twice, late and in any order, and two Prometheus servers may give one alert start times some seconds apart, so only the
// periods count:
//
//   - An end closes the period it falls into or after. One that lies before the start of the open period is about an earlier
//     period and changes nothing.
//   - A start after the last known end begins a new period. One at or before that end belongs to the period that has ended:
//     it is an old notification, or the end was not true (Alertmanager ends alerts that it hears nothing of for a while). It
//     changes nothing and leaves a doubt, to be settled by asking.
//   - Of two starts of an open period the later one counts: the end between them was lost.
func mergeAlert(known *period, said period) (period, effect) {
	switch {
	case known == nil && said.firing:
		return said, began
	case known == nil:
		return said, unchanged // It ended before it was heard of.
	case known.firing && said.firing:
		return period{firing: true, start: max(known.start, said.start)}, unchanged
	case known.firing && said.end >= known.start:
		return period{start: max(known.start, said.start), end: said.end}, ended
	case known.firing:
		return *known, unchanged
	case said.firing && said.start > known.end:
		return said, began
	case said.firing:
		return *known, doubted
	default:
		return period{start: max(known.start, said.start), end: max(known.end, said.end)}, unchanged
	}
}
