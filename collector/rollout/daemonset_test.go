package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/rollout"
)

func TestSlowDaemonSets(t *testing.T) {
	t.Parallel()
	rolling := func(unavailable, surge string) appsv1.DaemonSetUpdateStrategy {
		strategy := appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{}}
		if unavailable != "" {
			strategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(unavailable))
		}
		if surge != "" {
			strategy.RollingUpdate.MaxSurge = new(intstr.Parse(surge))
		}
		return strategy
	}
	for name, tc := range map[string]struct {
		reason, namespace string
		strategy          appsv1.DaemonSetUpdateStrategy
		nodes             int32
		want              time.Duration
	}{
		"Default":    {reason: "one pod at a time is the default", nodes: 250, want: 250 * 19 * time.Second},
		"One":        {reason: "one pod at a time", strategy: rolling("1", "0"), nodes: 32, want: 32 * 19 * time.Second},
		"Surge":      {reason: "one additional pod at a time", strategy: rolling("0", "1"), nodes: 250, want: 250 * 19 * time.Second},
		"Few":        {reason: "few nodes take less than ten minutes", nodes: 31},
		"Percentage": {reason: "ten percent at a time", strategy: rolling("10%", ""), nodes: 250},
		"OnePercent": {reason: "one percent of 60 nodes is rounded up to one", strategy: rolling("1%", ""), nodes: 60, want: 60 * 19 * time.Second},
		"Invalid":    {reason: "a value that is neither a number nor a percentage", strategy: rolling("many", ""), nodes: 250},
		"OnDelete":   {reason: "an update does not replace the pods", strategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}, nodes: 250},
		"Users":      {reason: "DaemonSets of users are not updated", namespace: "shop", nodes: 250},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := tc.namespace
			if namespace == "" {
				namespace = "openshift-multus"
			}
			set := appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"}, Spec: appsv1.DaemonSetSpec{UpdateStrategy: tc.strategy},
				Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: tc.nodes},
			}
			var want []rollout.Sequential
			if tc.want != 0 {
				want = []rollout.Sequential{{Namespace: namespace, Name: "set", Nodes: int(tc.nodes), Takes: tc.want}}
			}
			found := rollout.SlowDaemonSets([]appsv1.DaemonSet{set})
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, each := range found {
				if text := each.String(); !strings.HasPrefix(text, "DaemonSet openshift-multus/set replaces one pod at a time") {
					t.Errorf("%s: the text is %q", tc.reason, text)
				}
			}
		})
	}
}
