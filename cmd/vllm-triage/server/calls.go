package server

import (
	"errors"

	"vllm-triage/notify"
)

// call counts one call to the chat and notes what it says about the chat's health.
func (s *Server) call(operation string, do func() error) error {
	s.metrics.notifications.WithLabelValues(operation).Inc()
	err := do()
	s.chatAnswered(err)
	if e, ok := errors.AsType[*notify.Error](err); ok {
		s.metrics.notificationErrors.WithLabelValues(string(e.Reason)).Inc()
	}
	return err
}

// send is call for what leaves a message behind.
func (d *delivery) send(do func() (notify.Ref, error), operation string) (ref notify.Ref, err error) {
	err = d.s.call(operation, func() error {
		ref, err = do()
		return err
	})
	return ref, err
}
