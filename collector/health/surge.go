package health

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameRollingUpdates = finding.NewName("RollingUpdates",
		"Checks for Deployments of the platform whose new pod must be ready before the old one terminates, but cannot start until "+
			"then. Each has a finding RollingUpdates-<namespace>.<name>. It concerns every update, and warns.")

	reasonCannotSurge = finding.NewReason("NewPodWaitsForOld", finding.Explanation{
		Meaning: "The rolling update of a platform Deployment may hang.",
		Cause: "Its maxUnavailable is 0 pods, which is also a quarter of one to three replicas, so a new pod must be ready first. On " +
			"another node that pod cannot attach a ReadWriteOnce volume of the old one (\"Multi-Attach error\"), or no node has its " +
			"host port free. The known case is the image registry with one replica and a block volume as its storage.",
		Remedy: "Make the old pod terminate first, by the strategy Recreate of the operator that owns the Deployment: `oc describe " +
			"deployment NAME`.",
		Command: "oc edit configs.imageregistry.operator.openshift.io cluster",
	})
)

// RollingUpdates is the check RollingUpdates.
func RollingUpdates() check.Check {
	return check.Check{
		Name: nameRollingUpdates, Kind: finding.SourceHealth,
		Reads: []access.Request{
			check.List(appsv1.GroupName, "deployments"), check.List("", "nodes"),
			check.List("", "persistentvolumeclaims"), check.List("", "persistentvolumes"),
		},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			of, unread, err := readRollouts(ctx, s.Cluster)
			var found []finding.Finding
			for i := range of.deployments {
				if f, waits := of.evaluate(&of.deployments[i]); waits {
					found = append(found, f)
				}
			}
			if len(found) == 0 && err != nil {
				return check.Unread(unread, err), ctx.Err()
			}
			if len(found) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected,
					"no Deployment of the platform keeps a volume or a host port that its next pod needs")}, nil
			}
			return finding.Bounded(finding.Drafts(found...)), nil
		},
	}
}

type rollouts struct {
	deployments []appsv1.Deployment
	nodes       []corev1.Node
	// allNodes is false where a node that is not there may exist.
	allNodes bool
	claims   map[string]*corev1.PersistentVolumeClaim
	volumes  map[string]*corev1.PersistentVolume
}

// readRollouts reads what rollouts depend on. With an error there is the kind that could not be listed, and what was read
// before: an archive may have no volumes.
func readRollouts(ctx context.Context, cluster *snapshot.Cluster) (of *rollouts, unread string, err error) {
	of = &rollouts{claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{}}
	deployments, err := cluster.Deployments(ctx)
	if err != nil {
		return of, "Deployments", err
	}
	of.deployments = slices.DeleteFunc(slices.Clone(deployments),
		func(d appsv1.Deployment) bool { return !check.OfCluster(d.Namespace) || !startsFirst(&d) })
	if len(of.deployments) == 0 {
		return of, "", nil
	}
	watched, missing := gap.Watch(ctx)
	if of.nodes, err = cluster.Nodes(watched); err != nil {
		return of, "nodes", err
	}
	of.allNodes = missing.Err() == nil
	claims, err := snapshot.List[corev1.PersistentVolumeClaim](ctx, cluster, corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"))
	if err != nil {
		return of, "PersistentVolumeClaims", err
	}
	for i := range claims {
		of.claims[claims[i].Namespace+"/"+claims[i].Name] = &claims[i]
	}
	volumes, err := snapshot.List[corev1.PersistentVolume](ctx, cluster, corev1.SchemeGroupVersion.WithResource("persistentvolumes"))
	if err != nil {
		return of, "PersistentVolumes", err
	}
	for i := range volumes {
		of.volumes[volumes[i].Name] = &volumes[i]
	}
	return of, "", nil
}

// startsFirst is true where a rolling update ends no pod before a new one is ready, by the rounding of the Deployment
// controller (kubernetes pkg/controller/deployment/util, ResolveFenceposts): maxUnavailable down, maxSurge up, and one
// pod may be unavailable where both are 0.
func startsFirst(deployment *appsv1.Deployment) bool {
	replicas := 1
	if deployment.Spec.Replicas != nil {
		replicas = int(*deployment.Spec.Replicas)
	}
	strategy := deployment.Spec.Strategy
	if replicas == 0 || deployment.Spec.Paused || strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	surge, unavailable := intstr.FromString("25%"), intstr.FromString("25%")
	if rolling := strategy.RollingUpdate; rolling != nil {
		surge, unavailable = *intstr.ValueOrDefault(rolling.MaxSurge, surge), *intstr.ValueOrDefault(rolling.MaxUnavailable, unavailable)
	}
	more, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	fewer, err2 := intstr.GetScaledValueFromIntOrPercent(&unavailable, replicas, false)
	return err == nil && err2 == nil && more > 0 && fewer == 0
}

func (r *rollouts) evaluate(deployment *appsv1.Deployment) (finding.Finding, bool) {
	template := &deployment.Spec.Template.Spec
	eligible := len(r.eligible(template))
	causes := append(r.held(deployment.Namespace, template, eligible), r.ports(deployment, template, eligible)...)
	if len(causes) == 0 {
		return finding.Finding{}, false
	}
	object := finding.Object{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Namespace: deployment.Namespace,
		Name: deployment.Name,
	}
	return finding.Warn(reasonCannotSurge, "a new pod of %s must be ready before an old one terminates, and may not start until then: %s",
		check.Describe(object), words.Clauses(causes, maxNamed)).
		Named(finding.NameOf(nameRollingUpdates, deployment.Namespace+"."+deployment.Name)).About(object).
		Remedy("Make the operator that owns the Deployment terminate the old pod first: for the image registry, set " +
			"spec.rolloutStrategy of its Config to Recreate.").
		Do(finding.Read("oc -n %s describe deployment %s", deployment.Namespace, deployment.Name)), true
}

// held are the claims of the old pod that a pod on another node cannot use.
func (r *rollouts) held(namespace string, template *corev1.PodSpec, eligible int) []string {
	var causes []string
	for _, volume := range template.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := r.claims[namespace+"/"+volume.PersistentVolumeClaim.ClaimName]
		if claim == nil || len(claim.Spec.AccessModes) == 0 {
			continue
		}
		once := !slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
			return mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod
		})
		ofPod := slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod)
		if once && (ofPod || eligible > 1 && !r.ofOneNode(claim)) {
			causes = append(causes, fmt.Sprintf("PersistentVolumeClaim %q is %s", claim.Name, claim.Spec.AccessModes[0]))
		}
	}
	return causes
}

// ofOneNode is true for a claim whose volume has one node: the new pod comes to that node, too. A volume that is not known
// may move.
func (r *rollouts) ofOneNode(claim *corev1.PersistentVolumeClaim) bool {
	volume := r.volumes[claim.Spec.VolumeName]
	if volume == nil {
		return false
	}
	if volume.Spec.HostPath != nil || volume.Spec.Local != nil {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(requiredOf(volume))
	count := 0
	for i := range r.nodes {
		if err != nil || selector.Match(&r.nodes[i]) {
			count++
		}
	}
	return count == 1
}

// requiredOf selects the nodes of a volume: all for one that states none.
func requiredOf(volume *corev1.PersistentVolume) *corev1.NodeSelector {
	if affinity := volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		return affinity.Required
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists},
	}}}}
}

// ports are the host ports of a pod, where no node has one free that has no pod of the Deployment.
func (r *rollouts) ports(deployment *appsv1.Deployment, template *corev1.PodSpec, eligible int) []string {
	var ports []string
	for i := range template.Containers {
		for _, port := range template.Containers[i].Ports {
			if port.HostPort != 0 {
				ports = append(ports, fmt.Sprint(port.HostPort))
			}
		}
	}
	if len(ports) == 0 || !r.allNodes || eligible == 0 || int(deployment.Status.Replicas) < eligible {
		return nil
	}
	return []string{fmt.Sprintf("it needs the host port %s, and all %s that it may run on have a pod of it",
		strings.Join(ports[:min(len(ports), maxNamed)], ", "), words.Count(eligible, "node"))}
}

// eligible are the schedulable nodes that a pod may run on by its selectors and the taints of the nodes.
func (r *rollouts) eligible(template *corev1.PodSpec) []string {
	required := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *template})
	var names []string
	for i := range r.nodes {
		node := &r.nodes[i]
		_, repels := scheduling.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, template.Tolerations,
			func(taint *corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }, true)
		if fits, err := required.Match(node); err == nil && fits && !repels && !node.Spec.Unschedulable {
			names = append(names, node.Name)
		}
	}
	return names
}
