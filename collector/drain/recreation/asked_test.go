package recreation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/recreation"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// question is a pod that is evicted, and what the API server answered to the next pod of its controller.
type question struct {
	reason string
	state  func(*cluster)
	// said is the answer of the API server; nil where it was not asked. It is about the controller of the pod, unless about is another.
	said  *recreation.Said
	about preflight.Object
	// pods is how many pods of the controller are evicted, all with the same answer; one if zero.
	pods int
	want reply
	// why is a part of the reason.
	why string
	// differs is how many differences are reported.
	differs int
}

// reply is what is compared of an answer.
type reply struct {
	Outcome recreation.Outcome
	By      string
	// Asked is true where the API server has admitted the pod.
	Asked bool
	// CPU is what the containers of the pod request; empty where it is not another pod than the evicted one.
	CPU string
	// Fits is how many such pods the quota of the state has room for; zero where no quota counts them.
	Fits int
}

// TestAsked has what becomes of a pod once the API server was asked about the next one.
func TestAsked(t *testing.T) {
	t.Parallel()
	for title, rows := range map[string]map[string]question{
		"admitted": admissions(), "admittedAndCounted": charges(), "admittedAsModeled": agreements(), "refused": refusals(), "modeled": unasked(),
		"lost": losses(), "others": strangers(),
	} {
		for name, row := range rows {
			t.Run(title+"/"+name, func(t *testing.T) {
				t.Parallel()
				row.check(t)
			})
		}
	}
}

func (q *question) check(t *testing.T) {
	t.Helper()
	c := newCluster()
	q.state(c)
	workloads, about := c.workloads(), q.about
	if about == (preflight.Object{}) {
		about = c.controller()
	}
	var differences []string
	if q.said != nil {
		said := map[preflight.Object]recreation.Said{about: *q.said}
		workloads.Use(said, func(difference string) { differences = append(differences, difference) })
	}
	for i := range max(1, q.pods) {
		pod := c.pod.DeepCopy()
		pod.Name = fmt.Sprintf("cart-%d", i)
		got := workloads.Of(pod)
		if diff := cmp.Diff(q.want, replyOf(workloads, got)); diff != "" || !strings.Contains(got.Why, q.why) {
			t.Errorf("%s: pod %s: why %q, want %q (-want +got):\n%s", q.reason, pod.Name, got.Why, q.why, diff)
		}
		if got.Pod != nil {
			keepsIdentity(t, pod, got.Pod)
		}
	}
	if len(differences) != q.differs || strings.Count(strings.Join(differences, "\n"), `"cart" in namespace`) != q.differs {
		t.Errorf("%s: reported %q, want %d of the controller", q.reason, differences, q.differs)
	}
}

func replyOf(workloads *recreation.Workloads, of recreation.Answer) reply {
	found := reply{Outcome: of.Outcome, By: of.By, Asked: of.Asked}
	if of.Pod != nil {
		var requests []string
		for _, container := range of.Pod.Spec.Containers {
			requests = append(requests, container.Resources.Requests.Cpu().String())
		}
		found.CPU = strings.Join(requests, " ")
	}
	use := workloads.Quotas().Used()
	for len(of.Charges) > 0 && found.Fits < 100 {
		if _, _, admitted := use.Admit(of.Charges); !admitted {
			break
		}
		found.Fits++
	}
	return found
}

// keepsIdentity fails for a pod that is created in the place of another one, and is not of its controller.
func keepsIdentity(t *testing.T, evicted, created *corev1.Pod) {
	t.Helper()
	identity := func(pod *corev1.Pod) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, OwnerReferences: pod.OwnerReferences}
	}
	if diff := cmp.Diff(identity(evicted), identity(created)); diff != "" {
		t.Errorf("another pod is created (-evicted +created):\n%s", diff)
	}
}

// workloads are those of the cluster, with its ReplicaSet.
func (c *cluster) workloads() *recreation.Workloads {
	c.input.ReplicaSets, c.input.Namespaces = []appsv1.ReplicaSet{c.set}, []metav1.PartialObjectMetadata{c.namespace}
	return recreation.New(c.input)
}

// controller is that of the pod; the ReplicaSet for a pod without.
func (c *cluster) controller() preflight.Object {
	of := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart"}
	if len(c.pod.OwnerReferences) > 0 {
		of = c.pod.OwnerReferences[0]
	}
	return preflight.Object{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: c.pod.Namespace, Name: of.Name}
}

// admitted is the next pod as the API server would store it, with the requests of its containers. Its name, namespace and owner are
// those of the question, and of no pod of the cluster.
func admitted(requests ...string) *recreation.Said {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "asked", Name: "cart-x7k2p", GenerateName: "cart-", UID: "2c11",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart", UID: "6f1e", Controller: new(true)}},
	}}
	for i, cpu := range requests {
		container := template(list("cpu", cpu), nil).Spec.Containers[0]
		container.Name = fmt.Sprintf("c%d", i)
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return &recreation.Said{Admitted: pod}
}

func refusedBy(by, why string) *recreation.Said { return &recreation.Said{By: by, Why: why} }

func denied() *recreation.Said {
	return refusedBy(`webhook "deny.example.com"`, `admission webhook "deny.example.com" denied the request: not today`)
}

func overQuota() *recreation.Said {
	return &recreation.Said{By: `quota "compute"`, Why: "exceeded quota: compute, requested: pods=1, used: pods=3", Full: true}
}

// The states of the tables.
func asIs(*cluster) {}

// ratio is a LimitRange that bounds limits, of which the template has none.
func ratio(c *cluster) {
	c.input.Limits = limits(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")})
}

// counted adds a quota of 4 processors to a state.
func counted(state func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		state(c)
		c.input.Quotas = append(c.input.Quotas, quota(list("requests.cpu", "4"), list("requests.cpu", "0")))
	}
}

func unspecified(c *cluster) {
	c.set.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
}

// leveled is a namespace whose level of Pod Security a template exceeds that is another one than that of the pod.
func leveled(c *cluster) {
	c.namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	c.set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "nvme"}
}

func deniedNow(c *cluster) {
	c.set.Status.Conditions = failing(`admission webhook "a" denied the request`)
}

// of gives the pod another controller.
func of(version, kind string) func(*cluster) {
	return func(c *cluster) { c.pod.OwnerReferences[0].APIVersion, c.pod.OwnerReferences[0].Kind = version, kind }
}

func jobOf(made batchv1.Job) func(*cluster) {
	return func(c *cluster) {
		of("batch/v1", "Job")(c)
		c.input.Jobs = []batchv1.Job{made}
	}
}

// admissions have a model that refuses, or does not know, and an API server that admits.
func admissions() map[string]question {
	is := func(cpu string) reply { return reply{Outcome: recreation.Recreated, Asked: true, CPU: cpu} }
	return map[string]question{
		"Ratio": {reason: "a webhook may set the limits that a LimitRange bounds", state: ratio, said: admitted("2"), want: is("2"), differs: 1},
		"RuntimeClass": {
			reason: "the RuntimeClass may have come since", said: admitted("1"), want: is("1"), differs: 1,
			state: func(c *cluster) {
				c.set.Spec.Template.Spec.RuntimeClassName, c.input.AllRuntimes = new("kata"), true
			},
		},
		"PriorityClass": {
			reason: "a webhook may set another priority", said: admitted("1"), want: is("1"), differs: 1,
			state: func(c *cluster) {
				c.set.Spec.Template.Spec.PriorityClassName = "gone"
				c.input.Priorities = []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}}
			},
		},
		"Account": {
			reason: "the ServiceAccount may have come since", said: admitted("1"), want: is("1"), differs: 1,
			state: func(c *cluster) {
				c.input.Accounts = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}}}
			},
		},
		"Level": {
			reason: "the API server may exempt the namespace from Pod Security", said: admitted("1"), want: is("1"), differs: 1,
			state: func(c *cluster) {
				c.namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
			},
		},
		"Failing": {
			reason: "the condition of the ReplicaSet is of a refusal before", state: deniedNow, said: admitted("1"), want: is("1"), differs: 1,
		},
		"UnknownLevel": {
			reason: "a SecurityContextConstraints set what the level requires", state: leveled, said: admitted("1"), want: is("1"), differs: 1,
		},
		"UnknownNodes": {
			reason: "the model does not understand the node selector of the project", said: admitted("1"), want: is("1"), differs: 1,
			state: func(c *cluster) {
				c.namespace.Annotations = map[string]string{"openshift.io/node-selector": "disk in (nvme)"}
			},
		},
		"ReplicationController": {
			reason: "one of the core group", said: admitted("2"), want: is("2"), differs: 1,
			state: func(c *cluster) {
				of("v1", "ReplicationController")(c)
				ratio(c)
				c.input.Controllers = []corev1.ReplicationController{{
					ObjectMeta: c.set.ObjectMeta, Spec: corev1.ReplicationControllerSpec{Template: &c.set.Spec.Template},
				}}
			},
		},
		"TwoPods": {
			reason: "a difference is reported once for a controller", state: ratio, said: admitted("2"), pods: 2, want: is("2"),
			differs: 1,
		},
	}
}

// charges are those of an admitted pod that the model refuses.
func charges() map[string]question {
	is := func(cpu string, fits int) reply {
		return reply{Outcome: recreation.Recreated, Asked: true, CPU: cpu, Fits: fits}
	}
	return map[string]question{
		"Unspecified": {
			reason: "a webhook sets the requests for which a quota asks", state: counted(unspecified), said: admitted("500m"),
			want: is("500m", 8), differs: 1,
		},
		"Larger": {reason: "the template requests 1 processor", state: counted(ratio), said: admitted("2"), want: is("2", 2), differs: 1},
		"Injected": {
			reason: "a webhook adds a container, which a quota counts, too", state: counted(ratio), said: admitted("1", "1"),
			want: is("1 1", 2), differs: 1,
		},
		"TwoPods": {reason: "each pod is counted", state: counted(ratio), said: admitted("2"), pods: 2, want: is("2", 2), differs: 1},
	}
}

// agreements have a model and an API server that admit the pod.
func agreements() map[string]question {
	is := reply{Outcome: recreation.Recreated, Asked: true}
	return map[string]question{
		"Same": {reason: "the pod is of the template, and runs where the evicted one may", state: asIs, said: admitted("1"), want: is},
		"Changed": {
			reason: "a webhook gave the pod of a Deployment other requests, and does so again", said: admitted("2"), want: is,
			state: func(c *cluster) {
				c.set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart", Controller: new(true)}}
				c.pod.Spec.Containers[0].Resources.Requests = list("cpu", "2")
			},
		},
		"Counted": {
			reason: "a quota counts it as before", state: counted(asIs), said: admitted("1"),
			want: reply{Outcome: recreation.Recreated, Asked: true, Fits: 4},
		},
		"FailingByQuota": {
			reason: "the failure of now was that of a quota, and the quota has room", said: admitted("1"), want: is,
			state: func(c *cluster) {
				c.set.Status.Conditions = failing(`pods "cart-1" is forbidden: exceeded quota: compute`)
			},
		},
	}
}

// refusals have an API server that refuses the pod.
func refusals() map[string]question {
	is := reply{Outcome: recreation.Refused, By: `webhook "deny.example.com"`}
	const why = `cannot be created: admission webhook "deny.example.com" denied the request: not today`
	return map[string]question{
		"Webhook": {reason: "the model does not know what webhooks answer", state: asIs, said: denied(), want: is, why: why, differs: 1},
		"LimitRange": {
			reason: "the model did not read the LimitRange", state: asIs, want: reply{Outcome: recreation.Refused, By: "LimitRange"},
			said: refusedBy("LimitRange", "maximum cpu usage per Container is 500m, but limit is 1"), why: "maximum cpu usage", differs: 1,
		},
		"Counted": {reason: "a quota does not count what is not created", state: counted(asIs), said: denied(), want: is, why: why, differs: 1},
		"TwoPods": {
			reason: "a difference is reported once for a controller", state: asIs, said: denied(), pods: 2, want: is, why: why,
			differs: 1,
		},
		"Unknown": {reason: "the model does not know", state: leveled, said: denied(), want: is, why: why, differs: 1},
		"Both": {
			reason: "the model refuses it for the same reason, and the words of the API server count", state: ratio,
			want: reply{Outcome: recreation.Refused, By: "LimitRange"},
			said: refusedBy("LimitRange", "cpu max limit to request ratio per Container is 2, but no limit is specified"),
			why:  "no limit is specified",
		},
		"OtherReason": {
			reason: "the model refuses it for another reason: the outcome is the same", state: ratio, said: denied(), want: is,
			why: why,
		},
		"Failing": {reason: "it is refused as the last one was", state: deniedNow, said: denied(), want: is, why: why},
		"Job": {
			reason: "a Job has tries left, and its next pod is refused", state: jobOf(job(6, 0)), said: denied(), want: is, why: why,
			differs: 1,
		},
		"StatefulSet": {
			reason: "so is that of a StatefulSet", said: denied(), want: is, why: why, differs: 1,
			state: func(c *cluster) {
				of("apps/v1", "StatefulSet")(c)
				c.input.StatefulSets = []appsv1.StatefulSet{{ObjectMeta: c.set.ObjectMeta, Spec: appsv1.StatefulSetSpec{Template: c.set.Spec.Template}}}
			},
		},
	}
}

// unasked have the answers of the model: the API server was not asked, or was refused by a quota.
func unasked() map[string]question {
	is := reply{Outcome: recreation.Recreated}
	refused := reply{Outcome: recreation.Refused, By: `LimitRange "range"`}
	return map[string]question{
		"Admitted": {reason: "the API server was not asked, and the model admits it", state: asIs, want: is},
		"Refused":  {reason: "the API server was not asked, and the model refuses it", state: ratio, want: refused, why: "times its request"},
		"OtherNamespace": {
			reason: "the API server was asked about a controller of this name in another namespace", state: ratio, said: admitted("1"),
			want:  refused,
			about: preflight.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "bank", Name: "cart"},
		},
		"OtherKind": {
			reason: "the API server was asked about a StatefulSet of this name", state: asIs, want: is, said: denied(),
			about: preflight.Object{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "cart"},
		},
		"Quota": {
			reason: "a quota has room once the pod is evicted, of which the rehearsal of the drain decides", state: counted(asIs), said: overQuota(),
			want: reply{Outcome: recreation.Recreated, Fits: 4},
		},
		"QuotaOfUnknown": {
			reason: "a quota decides after Pod Security, of which the model does not know", state: leveled, said: overQuota(),
			want: reply{Outcome: recreation.Recreated, Asked: true, CPU: "1"}, differs: 1,
		},
		"QuotaOfBoth": {
			reason: "the model knows what the template lacks for the quota", state: counted(unspecified), said: overQuota(),
			want: reply{Outcome: recreation.Refused, By: `ResourceQuota "compute"`}, why: "requests.cpu",
		},
		"DaemonSet": {reason: "a drain leaves the pods of a DaemonSet", state: of("apps/v1", "DaemonSet"), said: denied(), want: is},
		"NotTheController": {
			reason: "a ReplicaSet that owns the pod, and is not its controller, is not asked about", said: admitted("1"), want: refused,
			state: func(c *cluster) { ratio(c); c.pod.OwnerReferences[0].Controller = nil },
		},
	}
}

// losses have pods that nothing creates again, whatever the API server would admit.
func losses() map[string]question {
	is := reply{Outcome: recreation.Lost}
	deleted := func(c *cluster) { c.set.DeletionTimestamp = new(metav1.Now()) }
	return map[string]question{
		"BeingDeleted": {
			reason: "a ReplicaSet that is being deleted creates nothing", state: deleted, said: admitted("1"), want: is,
			why: "being deleted",
		},
		"BeingDeletedRefused": {reason: "nor does it try", state: deleted, said: denied(), want: is, why: "being deleted"},
		"JobExhausted": {
			reason: "the eviction is the last failure of the Job", state: jobOf(job(0, 0)), said: admitted("1"), want: is,
			why: "backoffLimit",
		},
		"JobIndex": {
			reason: "the eviction is the last failure of an index of the Job", said: admitted("1"), want: is, why: "last attempt for index 3",
			state: func(c *cluster) {
				made := job(6, 0)
				made.Spec.BackoffLimitPerIndex = new(int32(1))
				jobOf(made)(c)
				c.pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: "3", batchv1.JobIndexFailureCountAnnotation: "1"}
			},
		},
		"NoController": {
			reason: "nothing creates it again", said: admitted("1"), want: is, why: "has no controller",
			state: func(c *cluster) { c.pod.OwnerReferences = nil },
		},
		"Gone": {
			reason: "its controller did not exist when the controllers were listed", said: admitted("1"), want: is, why: "does not exist",
			state: func(c *cluster) { c.pod.OwnerReferences[0].Name = "gone" },
		},
	}
}

// strangers have controllers that Kubernetes does not have, of which the API server does not know the next pods.
func strangers() map[string]question {
	is := reply{Outcome: recreation.Unknown}
	return map[string]question{
		"Custom": {
			reason: "what an operator creates is not known", state: of("db.example.com/v1", "Database"), said: admitted("1"), want: is,
			why: `Database.db.example.com "cart"`,
		},
		"CustomRefused": {
			reason: "nor what of it is refused", state: of("db.example.com/v1", "Database"), said: denied(), want: is,
			why: "Database",
		},
		"OtherGroup": {
			reason: "a StatefulSet of another API group", state: of("apps.kruise.io/v1beta1", "StatefulSet"), said: admitted("1"), want: is,
			why: "StatefulSet.apps.kruise.io",
		},
	}
}

// TestVolumesOfTheOrdinal has a StatefulSet whose next pod was asked about with an ordinal that no pod has: of the admitted pod, all but
// the volumes counts.
func TestVolumesOfTheOrdinal(t *testing.T) {
	t.Parallel()
	claiming := func(name string) []corev1.Volume {
		return []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name},
		}}}
	}
	for name, tc := range map[string]struct {
		reason string
		state  func(*cluster)
	}{
		"Same":    {reason: "the evicted pod has the claims of the next one", state: asIs},
		"Changed": {reason: "the template is another one: the claims are of its own ordinal", state: leveled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			of("apps/v1", "StatefulSet")(c)
			ratio(c)
			tc.state(c)
			c.input.StatefulSets = []appsv1.StatefulSet{{ObjectMeta: c.set.ObjectMeta, Spec: appsv1.StatefulSetSpec{
				Template: c.set.Spec.Template, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
			}}}
			said, workloads := admitted("2"), c.workloads()
			said.Admitted.Name, said.Admitted.Spec.Volumes = "cart-999", claiming("cart-999")
			workloads.Use(map[preflight.Object]recreation.Said{c.controller(): *said}, func(string) {})
			for i := range 2 {
				pod := c.pod.DeepCopy()
				pod.Name = fmt.Sprintf("cart-%d", i)
				pod.Spec.Volumes = claiming(pod.Name)
				got := workloads.Of(pod)
				if got.Pod == nil {
					t.Fatalf("%s: no pod in %+v", tc.reason, got)
				}
				keepsIdentity(t, pod, got.Pod)
				if diff := cmp.Diff(claiming(pod.Name), got.Pod.Spec.Volumes); diff != "" {
					t.Errorf("%s: the volumes of %s (-want +got):\n%s", tc.reason, pod.Name, diff)
				}
				if cpu := got.Pod.Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "2" {
					t.Errorf("%s: %s requests %s, want 2", tc.reason, pod.Name, cpu)
				}
				got.Pod.Spec.Containers[0].Resources.Requests["cpu"] = list("cpu", "7")["cpu"] // of this answer alone
			}
		})
	}
}

// TestDifferences has two controllers that differ from the model, of which each is reported once, with both answers.
func TestDifferences(t *testing.T) {
	t.Parallel()
	c := newCluster()
	ratio(c)
	var differences []string
	admits, refuses := c.controller(), preflight.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: "bank", Name: "import"}
	c.input.Jobs = []batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: refuses.Namespace, Name: refuses.Name}}}
	workloads := c.workloads()
	said := map[preflight.Object]recreation.Said{admits: *admitted("1"), refuses: *denied()}
	workloads.Use(said, func(difference string) { differences = append(differences, difference) })
	other := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: refuses.Namespace, Name: "import-0"}}
	other.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: refuses.APIVersion, Kind: refuses.Kind, Name: refuses.Name, Controller: new(true),
	}}
	for range 3 {
		workloads.Of(&c.pod)
		workloads.Of(&other)
	}
	want := [][]string{
		{`ReplicaSet "cart"`, "admits it", "Refused", "times its request"},
		{`Job "import"`, "refuses it", `webhook "deny.example.com"`, "Recreated"},
	}
	if len(differences) != len(want) {
		t.Fatalf("reported %q, want one of each controller", differences)
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(differences[i], part) {
				t.Errorf("%q is not in %q", part, differences[i])
			}
		}
	}
}

// TestControllerOf has the controllers about whose next pods the API server is asked.
func TestControllerOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason        string
		version, kind string
		owns          bool // without being the controller
		want          bool
	}{
		"ReplicaSet":            {reason: "a controller of Kubernetes", version: "apps/v1", kind: "ReplicaSet", want: true},
		"StatefulSet":           {reason: "a controller of Kubernetes", version: "apps/v1", kind: "StatefulSet", want: true},
		"ReplicationController": {reason: "a controller of the core group", version: "v1", kind: "ReplicationController", want: true},
		"Job":                   {reason: "a controller of Kubernetes", version: "batch/v1", kind: "Job", want: true},
		"DaemonSet":             {reason: "a drain leaves its pods", version: "apps/v1", kind: "DaemonSet"},
		"OtherGroup":            {reason: "a kind of the same name of another API group", version: "apps.kruise.io/v1beta1", kind: "StatefulSet"},
		"Node":                  {reason: "a static pod", version: "v1", kind: "Node"},
		"Owner":                 {reason: "an owner that is not the controller", version: "apps/v1", kind: "ReplicaSet", owns: true},
		"None":                  {reason: "a pod without an owner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0"}}, preflight.Object{}
			if tc.kind != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: tc.version, Kind: tc.kind, Name: "cart", Controller: new(!tc.owns)}}
			}
			if tc.want {
				want = preflight.Object{APIVersion: tc.version, Kind: tc.kind, Namespace: "shop", Name: "cart"}
			}
			got, ok := recreation.ControllerOf(pod)
			if diff := cmp.Diff(want, got); diff != "" || ok != tc.want {
				t.Errorf("%s: got %t, want %t (-want +got):\n%s", tc.reason, ok, tc.want, diff)
			}
		})
	}
}
