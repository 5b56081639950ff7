package chatops

import (
	"sync"
	"time"
)

// seen remembers keys for a while. It is bounded: when it is full, the key that ends first makes room.
type seen struct {
	mu   sync.Mutex
	ends map[string]time.Time
	size int
}

func newSeen(size int) *seen { return &seen{ends: map[string]time.Time{}, size: size} }

// first says whether a key is new, and remembers it.
func (s *seen) first(key string, now time.Time, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end, ok := s.ends[key]; ok && now.Before(end) {
		return false
	}
	if len(s.ends) >= s.size {
		s.makeRoom(now)
	}
	s.ends[key] = now.Add(ttl)
	return true
}

func (s *seen) makeRoom(now time.Time) {
	var oldest string
	var end time.Time
	for k, e := range s.ends {
		if !now.Before(e) {
			delete(s.ends, k)
			continue
		}
		if oldest == "" || e.Before(end) {
			oldest, end = k, e
		}
	}
	if len(s.ends) >= s.size {
		delete(s.ends, oldest)
	}
}

// forget makes a key new again.
func (s *seen) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ends, key)
}

// cache keeps values for a while. It is bounded in the same way.
type cache[V any] struct {
	mu     sync.Mutex
	values map[string]cached[V]
	size   int
}

type cached[V any] struct {
	value V
	until time.Time
}

func newCache[V any](size int) *cache[V] {
	return &cache[V]{values: map[string]cached[V]{}, size: size}
}

// get returns a value and whether it is still fresh.
func (c *cache[V]) get(key string, now time.Time) (value V, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.values[key]
	return x.value, ok && now.Before(x.until)
}

func (c *cache[V]) put(key string, value V, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.values[key]; !known && len(c.values) >= c.size {
		var oldest string
		var end time.Time
		for k, x := range c.values {
			if oldest == "" || x.until.Before(end) {
				oldest, end = k, x.until
			}
		}
		delete(c.values, oldest)
	}
	c.values[key] = cached[V]{value, until}
}
