package hosted_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/update"
)

// answers are those that differ between estates.
type answers struct {
	// Manages is true where the judged cluster runs its own control plane.
	Manages, HasMachineConfig, Unread, Predicts, Starts, Hosted bool
	Namespace, Name, Profile                                    string
	Pools                                                       []string
	// Guest, Checks, First and Later are how many checks there are, of one of the judged cluster.
	Guest, Checks, First, Later, Steps int
	Subject, Drains                    []order.NodePool
}

func answersOf(t *testing.T, estate hosted.Estate) answers {
	t.Helper()
	judged := (&stub{}).connect(t)
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	a := answers{
		Manages: estate.Management(judged) == judged, HasMachineConfig: estate.HasMachineConfig(), Unread: estate.GuestError() != nil,
		Namespace: estate.Namespace(), Profile: estate.Profile(), Guest: len(estate.Guest(make([]check.Check, 1))), Checks: len(estate.Checks()),
	}
	a.Name, a.Pools = estate.Selected()
	_, a.Predicts = estate.Predict("4.19.0")
	_, a.Starts = estate.Start(next)
	subject := estate.Subject(check.Subject{Now: now})
	a.Hosted, a.Subject = subject.Hosted, subject.NodePools
	first, later := estate.Ahead()
	a.First, a.Later = len(first), len(later)
	drains, err := estate.Drains(now)
	if err != nil {
		t.Fatal(err)
	}
	a.Drains = drains
	route, err := estate.Route([]update.Release{{Version: "4.18.5"}, {Version: "4.19.0", Image: next}})
	if err != nil {
		t.Fatal(err)
	}
	a.Steps = len(route.Steps)
	return a
}

// What depends on whether a cluster is hosted, and on whether its guest can be reached, is answered once.
func TestEstate(t *testing.T) {
	workers := []order.NodePool{{Name: "workers"}}
	for name, tc := range map[string]struct {
		reason string
		make   func(*testing.T) hosted.Estate
		want   answers
	}{
		"Own": {
			reason: "a cluster that is not hosted is judged by itself, and HyperShift decides nothing about it",
			make:   func(*testing.T) hosted.Estate { return hosted.Estate{} },
			want:   answers{Manages: true, HasMachineConfig: true, Guest: 1},
		},
		"Hosted": {
			reason: "the management cluster is judged beside the guest, and HyperShift decides",
			make:   func(t *testing.T) hosted.Estate { t.Helper(); return reach(t, nil) },
			want: answers{
				Predicts: true, Starts: true, Hosted: true, Namespace: "clusters-example", Name: "clusters/example", Profile: "ibm-cloud-managed",
				Guest: 1, Checks: 8, First: 3, Later: 1, Steps: 2, Subject: []order.NodePool{}, Drains: workers,
			},
		},
		"Named": {
			reason: "the nodes of pools that are named for the update are drained by it",
			make:   func(t *testing.T) hosted.Estate { t.Helper(); return reach(t, nil, "workers") },
			want: answers{
				Predicts: true, Starts: true, Hosted: true, Namespace: "clusters-example", Name: "clusters/example", Profile: "ibm-cloud-managed",
				Pools: []string{"workers"}, Guest: 1, Checks: 9, First: 3, Later: 1, Steps: 2, Subject: workers, Drains: workers,
			},
		},
		"Unread": {
			reason: "no check of a guest that cannot be reached is made, but one that states it",
			make:   func(t *testing.T) hosted.Estate { t.Helper(); return reach(t, errors.New("no route to host")) },
			want: answers{
				Unread: true, Predicts: true, Starts: true, Hosted: true, Namespace: "clusters-example", Name: "clusters/example",
				Profile: "ibm-cloud-managed",
				Checks:  9, First: 3, Later: 1, Steps: 2, Subject: []order.NodePool{}, Drains: workers,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, answersOf(t, tc.make(t))); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// reach opens the hosted cluster clusters/example, whose guest cannot be reached for that cause.
func reach(t *testing.T, cause error, pools ...string) hosted.Estate {
	t.Helper()
	guest := &stub{objects: map[string]any{"/apis/config.openshift.io/v1/clusterversions/version": map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"},
		"spec": map[string]any{"clusterID": hostedCluster().Spec.ClusterID},
	}}}
	selected := hosted.Selection{
		Namespace: "clusters", Name: "example", Pools: pools,
		Guest: func() (*cluster.Cluster, error) { return guest.connect(t), cause },
	}
	_, estate, err := hosted.Reach(t.Context(), many().connect(t), selected, connect)
	if err != nil {
		t.Fatal(err)
	}
	return estate
}
