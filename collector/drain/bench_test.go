package drain_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
)

// large is a cluster with 500 nodes in three zones and five pools, 20000 pods of 2000
// workloads, and 1000 budgets. A tenth of the workloads have anti-affinity, a tenth topology
// spread.
func large() *world {
	const nodes, workloads, replicas = 500, 2000, 10
	w := &world{}
	for i := range nodes {
		node := w.node(fmt.Sprintf("n%03d", i), fmt.Sprintf("pool%d", i%5))
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("z%d", i%3)
	}
	for i := range 5 {
		w.pool(fmt.Sprintf("pool%d", i), false)
		w.pools[i].Spec.MaxUnavailable = new(intstr.FromInt32(2))
	}
	for i := range workloads {
		app := fmt.Sprintf("app%04d", i)
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("100Mi"),
		}}}}}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		switch i % 10 {
		case 0:
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: selector, TopologyKey: corev1.LabelHostname,
			}}}}
		case 1:
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 3, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
			}}
		}
		var on []string
		for j := range replicas {
			on = append(on, fmt.Sprintf("n%03d", (i*replicas+j*7)%nodes))
		}
		w.deploy(app, spec, on...)
		if i%2 == 0 {
			w.budget(app, 1, replicas, replicas-1, replicas)
		}
	}
	return w
}

func BenchmarkRehearse(b *testing.B) {
	input := large().input(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, pool := range drain.Rehearse(input).Pools {
			if pool.Outcome != drain.Clear {
				b.Fatalf("%+v", pool)
			}
		}
	}
}
