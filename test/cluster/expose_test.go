package cluster_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
)

func TestExposeRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, server, want string
	}{
		"OtherMachine": {reason: "the cluster forwards to this machine only", server: "192.0.2.1:80", want: "loopback"},
		"NoPort":       {reason: "a rule is for one port", server: "127.0.0.1", want: "loopback"},
		"Name":         {reason: "rules have addresses", server: "localhost:80", want: "loopback"},
		"NoNode":       {reason: "there are no pods", server: "127.0.0.1:80", want: "has started no node"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&cluster.Cluster{}).Expose(t.Context(), tc.server)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.server) {
				t.Errorf("%s: error %v, want one with %q and %q", tc.reason, err, tc.want, tc.server)
			}
		})
	}
}
