package main

import (
	"io"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// A candidate sees the last renewal, waits for the duration of the Lease, and tries again: together less than
// 45 seconds.
func TestTimesOfLeaderElection(t *testing.T) {
	f, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	attempt := time.Duration((1 + leaderelection.JitterFactor) * float64(f.retry))
	if sum := attempt + f.lease + attempt; sum >= 45*time.Second {
		t.Errorf("a candidate waits up to %s, want less than 45s", sum)
	}
	if f.renew >= f.lease || attempt >= f.renew {
		t.Errorf("lease %s, renew %s, attempts up to %s apart: each must be shorter than the one before", f.lease, f.renew, attempt)
	}
}
