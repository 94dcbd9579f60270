package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/words"
)

const (
	// podTime is how long a DaemonSet takes to replace the pod of one node: 250 nodes took
	// 80 minutes (enhancement eus-upgrades-mvp).
	podTime = 19 * time.Second
	// slow is the time from which a DaemonSet prolongs an update.
	slow = 10 * time.Minute
)

// Sequential is a DaemonSet that replaces the pod of one node at a time.
type Sequential struct {
	Namespace, Name string
	Nodes           int
	// Takes is the estimated time of an update.
	Takes time.Duration
}

// String states what prolongs an update, and by how much.
func (s Sequential) String() string {
	return fmt.Sprintf("DaemonSet %s/%s replaces one pod at a time (maxUnavailable 1) on %s: about %.0f minutes",
		s.Namespace, s.Name, words.Count(s.Nodes, "node"), s.Takes.Round(5*time.Minute).Minutes())
}

// SlowDaemonSets are the DaemonSets of the release, in namespaces openshift-*, that replace
// one pod at a time and take longer than ten minutes, the slowest first.
func SlowDaemonSets(all []appsv1.DaemonSet) []Sequential {
	var found []Sequential
	for i := range all {
		nodes := int(all[i].Status.DesiredNumberScheduled)
		takes := time.Duration(nodes) * podTime
		if takes > slow && strings.HasPrefix(all[i].Namespace, "openshift-") && oneAtATime(all[i].Spec.UpdateStrategy, nodes) {
			found = append(found, Sequential{Namespace: all[i].Namespace, Name: all[i].Name, Nodes: nodes, Takes: takes})
		}
	}
	slices.SortFunc(found, func(a, b Sequential) int {
		return cmp.Or(cmp.Compare(b.Takes, a.Takes), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// oneAtATime reports whether an update replaces one pod after the other. Percentages are
// rounded up (kubernetes pkg/controller/daemon/update.go).
func oneAtATime(strategy appsv1.DaemonSetUpdateStrategy, nodes int) bool {
	if strategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return false
	}
	rolling := strategy.RollingUpdate
	if rolling == nil {
		return true
	}
	at := 0
	for _, each := range []*intstr.IntOrString{rolling.MaxUnavailable, rolling.MaxSurge} {
		if each == nil {
			continue
		}
		number, err := intstr.GetScaledValueFromIntOrPercent(each, nodes, true)
		if err != nil {
			return false
		}
		at += number
	}
	return at <= 1
}
