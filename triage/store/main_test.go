package store_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"vllm-triage/triage/store/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	storetest.Stop()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
