package lab

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// reported adds a workload of a kind of which drains were once predicted wrongly.
func (g *generator) reported(app string) {
	of := workload{app: app, replicas: g.between(1, 3), template: g.template(app)}
	switch g.random.IntN(9) {
	case 0, 1:
		g.refused(&of)
	case 2:
		of.template.Spec.Affinity, of.template.Spec.TopologySpreadConstraints = near(app), nil
		g.cluster.Share(app, &of.template)
		g.cluster.Deployments = append(g.cluster.Deployments, g.deployment(&of))
	case 3:
		g.canary(&of)
	case 4:
		g.leaving(&of)
	case 5:
		g.claimAgain(&of)
	case 6:
		of.replicas = 1
		of.template.Spec.RestartPolicy = corev1.RestartPolicyNever
		g.cluster.Operate(TaskRun(), Operand{Name: app, Replicas: 1, Template: of.template})
		last := len(g.cluster.Operated) - 1
		g.cluster.Pods, g.cluster.Operated = append(g.cluster.Pods, g.cluster.Operated[last]), g.cluster.Operated[:last]
		return
	case 7:
		g.restored(&of)
	default:
		of.template.Spec.Tolerations = append(of.template.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		g.common(&of)
	}
	if g.chance(70) {
		g.cluster.LateBudgets = append(g.cluster.LateBudgets, g.budget(app, app, of.replicas))
	}
}

// known adds what package reference knows of the kinds of reported.
func (g *generator) known(app string) {
	of := workload{app: app, replicas: g.between(1, 3), template: g.template(app)}
	switch g.random.IntN(3) {
	case 0:
		g.cluster.Share(app, &of.template)
		g.cluster.Deployments = append(g.cluster.Deployments, g.deployment(&of))
	case 1:
		set := g.stateful(&of)
		set.Spec.PodManagementPolicy, set.DeletionTimestamp = appsv1.ParallelPodManagement, &metav1.Time{}
	default:
		g.cluster.Deployments = append(g.cluster.Deployments, g.deployment(&of))
		g.cluster.Limits = append(g.cluster.Limits,
			corev1.LimitRange{ObjectMeta: g.named("least"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(g.between(1, 9)*100),
					resource.DecimalSI)},
			}}}})
	}
	if g.chance(60) {
		g.cluster.Budgets = append(g.cluster.Budgets, g.budget(app, app, of.replicas))
	}
}

func near(app string) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: selecting(app), TopologyKey: corev1.LabelHostname},
	}}}}
}

// refused adds a workload whose pods the API server refuses from now on.
func (g *generator) refused(of *workload) {
	c, name := &g.cluster, g.cluster.Namespace+"-"+of.app
	switch g.random.IntN(6) {
	case 0:
		of.template.Spec.ServiceAccountName = of.app
		c.Objects = append(c.Objects, &corev1.ServiceAccount{ObjectMeta: g.named(of.app)})
		c.Changes = append(c.Changes, Change{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Namespace: c.Namespace,
			Name: of.app,
		})
	case 1:
		of.template.Spec.RuntimeClassName = &name
		c.Objects = append(c.Objects, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runc"})
		c.Changes = append(c.Changes, Change{GroupVersionKind: nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), Name: name})
	case 2:
		c.deny(name, of.app)
	case 3:
		c.review(name, of.app)
	case 4:
		level := []string{"baseline", "restricted"}[g.random.IntN(2)]
		c.Changes = append(c.Changes, Change{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Name: c.Namespace,
			Patch: fmt.Sprintf(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%q}}}`, level),
		})
	default:
		of.template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}
		c.Limits = append(c.Limits, corev1.LimitRange{ObjectMeta: g.named("ratio"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(
				int64(g.between(5, 12)), resource.DecimalSI)},
		}}}})
	}
	g.common(of)
}

// created matches the pods of an app when they are created.
func created() []admissionregistrationv1.OperationType {
	return []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
}

func podRule() admissionregistrationv1.Rule {
	return admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}
}

func (c *Cluster) namespaceSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.Namespace}}
}

// deny adds a policy that denies the pods of an app.
func (c *Cluster) deny(name, app string) {
	c.Reviewers = append(c.Reviewers, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: c.namespaceSelector(), ObjectSelector: selecting(app),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: created(), Rule: podRule()}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "has(object.spec.hostNetwork) && object.spec.hostNetwork"}},
		},
	}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
}

// review adds a webhook whose Service does not exist, which receives the pods of an app.
func (c *Cluster) review(name, app string) {
	c.Reviewers = append(c.Reviewers, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: app + ".drain.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
				Namespace: c.Namespace,
				Name:      "absent",
			}},
			NamespaceSelector: c.namespaceSelector(), ObjectSelector: selecting(app),
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: created(), Rule: podRule()}},
		}},
	})
}

// canary adds a Deployment in the middle of its rollout, whose new pods do not get ready, maybe paused.
func (g *generator) canary(of *workload) {
	of.replicas = g.between(2, 3)
	of.template.Annotations[AnnotationReady] = "300ms"
	made := g.deployment(of)
	if g.chance(50) {
		made.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxSurge:       new(intstr.FromInt32(0)),
			MaxUnavailable: new(intstr.FromInt32(1)),
		}
	}
	g.cluster.Deployments = append(g.cluster.Deployments, made)
	change := Change{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: g.cluster.Namespace, Name: of.app}
	next, paused := change, change
	next.Patch, next.Settles = fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, AnnotationReady, NeverReady), true
	paused.Patch = `{"spec":{"paused":true}}`
	if g.cluster.Changes = append(g.cluster.Changes, next); g.chance(60) {
		g.cluster.Changes = append(g.cluster.Changes, paused)
	}
}

// leaving adds a controller that is being deleted and waits for a finalizer.
func (g *generator) leaving(of *workload) {
	kind := StatefulSet()
	if g.chance(50) {
		kind = ReplicaSet()
		g.cluster.ReplicaSets = append(g.cluster.ReplicaSets, appsv1.ReplicaSet{
			ObjectMeta: g.named(of.app), Spec: appsv1.ReplicaSetSpec{Replicas: of.number(), Selector: selecting(of.app), Template: of.template},
		})
		g.cluster.ReplicaSets[len(g.cluster.ReplicaSets)-1].Finalizers = []string{Removed}
	} else {
		g.stateful(of).Finalizers = []string{Removed}
	}
	g.cluster.Changes = append(g.cluster.Changes, Change{GroupVersionKind: kind, Namespace: g.cluster.Namespace, Name: of.app})
}

// claimAgain adds a StatefulSet of which a claim is being deleted, and spare volumes or none.
func (g *generator) claimAgain(of *workload) {
	c, class := &g.cluster, g.cluster.Namespace+"-"+of.app
	c.Objects = append(c.Objects, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: class},
		Provisioner: "kubernetes.io/no-provisioner",
	})
	for i := range of.replicas + g.between(0, 2) {
		c.Spare(fmt.Sprintf("%s-%d", class, i), class)
	}
	set := g.stateful(of)
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	claim := g.claim("data", "")
	claim.Namespace, claim.Spec.StorageClassName = "", &class
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	c.Changes = append(c.Changes, Change{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), Namespace: c.Namespace, Name: "data-" + of.app + "-0",
	})
}

// Spare adds a volume of a class that no claim has.
func (c *Cluster) Spare(name, class string) {
	c.Volumes = append(c.Volumes, corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ClusterLabel: c.Namespace}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			StorageClassName: class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.1", Path: "/x"}},
		},
	})
}

// restored adds a StatefulSet whose template has a finalizer or a gate that was removed from its running pods.
func (g *generator) restored(of *workload) {
	patch := `{"metadata":{"finalizers":null}}`
	if g.chance(50) {
		of.template.Finalizers = []string{Foreign}
	} else {
		of.template.Spec.SchedulingGates, patch = []corev1.PodSchedulingGate{{Name: "drain.test/gate"}}, `{"spec":{"schedulingGates":null}}`
	}
	g.stateful(of).Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	for i := range of.replicas {
		g.cluster.Changes = append(g.cluster.Changes, Change{
			GroupVersionKind: Pod(), Namespace: g.cluster.Namespace,
			Name: fmt.Sprintf("%s-%d", of.app, i), Patch: patch, Settles: i == of.replicas-1,
		})
	}
}
