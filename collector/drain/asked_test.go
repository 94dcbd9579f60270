package drain_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ratio is a LimitRange that refuses the containers without a limit of processors.
func ratio(w *world) {
	w.workloads.Limits = []corev1.LimitRange{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ratio"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: requesting("2").Containers[0].Resources.Requests,
		}}},
	}}
}

// budgeted is a ReplicaSet with a pod on each of two nodes, of which a budget lets one be away.
func budgeted(w *world) {
	w.deploy("db", requesting("100m"), "w0", "w1")
	w.budget("db", 1, 2, 1, 2)
}

// ordinals is a StatefulSet of three pods, each with a volume in the zone of its node, which a budget evicts one after the other.
func ordinals(w *world) {
	w.inZones("a", "b", "a")
	w.claiming("db", "w0", "w1", "w2")
	for i, zone := range []string{"a", "b", "a"} {
		w.volumes[i].Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
			}},
		}}}}
	}
	w.budget("db", 1, 3, 2, 3)
}

// admittedAs is the next pod of db as the API server would store it.
func admittedAs(spec corev1.PodSpec) *recreation.Said {
	return &recreation.Said{Admitted: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-999"}, Spec: spec}}
}

// spoken is a drain of pool worker after the API server was asked about the next pod of db.
type spoken struct {
	reason  string
	build   func(*world)
	said    *recreation.Said // nil where it was not asked
	want    []string
	without string
}

// TestAsked has drains that end or not by what the API server said, against the model and its webhooks.
func TestAsked(t *testing.T) {
	t.Parallel()
	for title, rows := range map[string]map[string]spoken{"model": againstModel(), "webhooks": againstWebhooks()} {
		for name, row := range rows {
			t.Run(title+"/"+name, func(t *testing.T) {
				t.Parallel()
				row.check(t)
			})
		}
	}
}

// The answers of the API server to the next pod of db.
func asBefore() *recreation.Said { return admittedAs(requesting("100m")) }

func denies() *recreation.Said {
	return &recreation.Said{By: `webhook "deny.example.com"`, Why: `admission webhook "deny.example.com" denied the request`}
}

func overQuota() *recreation.Said {
	return &recreation.Said{By: `quota "q"`, Why: "exceeded quota: q", Full: true}
}

// Parts of the summaries of rehearsals.
const (
	clears = "worker Clear w0 "
	sticks = "worker Sticks w0"
	waits  = "pending shop/db-0: "
	denial = waits + `webhook "deny.example.com" refuses it: it cannot be created: admission webhook "deny.example.com" denied the request`
)

// againstModel has no webhooks that the model knows.
func againstModel() map[string]spoken {
	return map[string]spoken{
		"Refuses": {
			reason: "the LimitRange keeps the first pod from being created, and the budget the second one", build: refusing(budgeted),
			want: []string{sticks, waits + `LimitRange "ratio" refuses it`},
		},
		"RefusesAndAdmitted": {
			reason: "a webhook sets the limit", build: refusing(budgeted), said: asBefore(), want: []string{clears},
			without: "pending",
		},
		"RefusesAndAdmittedAsLarge": {
			reason: "the webhook requests more than a node has", build: refusing(budgeted), said: admittedAs(requesting("5")),
			want:    []string{sticks, waits},
			without: "refuses it",
		},
		"RefusesAndDenied": {
			reason: "both refuse it, and the words of the API server count", build: refusing(budgeted), said: denies(),
			want:    []string{sticks, denial},
			without: "LimitRange",
		},
		"Admits": {reason: "nothing refuses the next pods", build: budgeted, want: []string{clears}, without: "pending"},
		"AdmitsAndDenied": {
			reason: "a webhook denies them, of which the model knows nothing", build: budgeted, said: denies(), want: []string{sticks, denial},
		},
		"AdmitsAndOverQuota": {
			reason: "the quota has room for each pod that is evicted", build: budgeted, said: overQuota(), want: []string{clears},
			without: "pending",
		},
		"LostAndAdmitted": {
			reason: "a ReplicaSet that is being deleted creates nothing", said: asBefore(), want: []string{sticks, "lost shop/db-0"},
			build: func(w *world) {
				budgeted(w)
				w.workloads.ReplicaSets[0].DeletionTimestamp = new(metav1.NewTime(now))
			},
		},
		"Ordinals": {
			reason: "the admitted pod has a volume in zone a, and db-1 one in zone b, which has no other node", build: refusing(ordinals),
			said: admittedAs(small().zonal("data-db-0", "a")), want: []string{clears, "delayed shop/db-1 on w1"}, without: "delayed shop/db-0",
		},
	}
}

// againstWebhooks has webhooks and policies that refuse the next pods, or of which the model does not know what they answer.
func againstWebhooks() map[string]spoken {
	down := reviewed(guard("db"))
	return map[string]spoken{
		"Down": {reason: "a webhook has no back end", build: down, want: []string{sticks, waits + "the API server refuses it"}},
		"DownAndAdmitted": {
			reason: "the webhook did not prevent the admission of the pod that was asked about", build: down, said: asBefore(),
			want:    []string{clears},
			without: "pending",
		},
		"DownAndOverQuota": {
			reason: "what a quota refuses was not admitted", build: down, said: overQuota(),
			want: []string{sticks, waits + "the API server refuses it"},
		},
		"DownAndDenied": {
			reason: "the words of the API server count", build: down, said: denies(), want: []string{sticks, denial}, without: "guard.example.com",
		},
		"Unknown": {reason: "a policy came after the pods, and what it answers is not known", build: policed, want: []string{"worker Unknown"}},
		"UnknownAndAdmitted": {
			reason: "the policy has answered the question, too", build: policed, said: asBefore(), want: []string{clears}, without: "pending",
		},
		"UnknownAndDenied": {reason: "it has, and another one denies the pod", build: policed, said: denies(), want: []string{sticks, denial}},
	}
}

// refusing adds a LimitRange that refuses all pods to a world.
func refusing(build func(*world)) func(*world) {
	return func(w *world) {
		build(w)
		ratio(w)
	}
}

// reviewed has webhooks receive the next pods.
func reviewed(input reviewer.Input) func(*world) {
	return func(w *world) {
		budgeted(w)
		w.creation = reviewer.Creations(input)
	}
}

// policed has a policy receive the next pods that is younger than those of now.
func policed(w *world) {
	budgeted(w)
	w.denied(now)
}

func (s *spoken) check(t *testing.T) {
	t.Helper()
	w := small()
	s.build(w)
	input := w.input(t)
	if s.said != nil {
		said := map[preflight.Object]recreation.Said{}
		for _, kind := range []string{"ReplicaSet", "StatefulSet"} {
			said[preflight.Object{APIVersion: "apps/v1", Kind: kind, Namespace: "shop", Name: "db"}] = *s.said
		}
		input.Workloads.Use(said, func(string) {})
	}
	got := summary(drain.Rehearse(input))
	for _, line := range s.want {
		if !strings.Contains(got+"\n", line) {
			t.Errorf("%s: %q is not in\n%s", s.reason, line, got)
		}
	}
	if s.without != "" && strings.Contains(got, s.without) {
		t.Errorf("%s: %q is in\n%s", s.reason, s.without, got)
	}
}
