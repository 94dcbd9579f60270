package health_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// text is an object as the API server sends it.
func text(t *testing.T, object any) string {
	t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// parsed are objects of YAML, in flow style.
func parsed(t *testing.T, objects []string) []any {
	t.Helper()
	var all []any
	for _, each := range objects {
		var object any
		if err := yaml.Unmarshal([]byte(each), &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// rollout is a Deployment, and what its pods need.
type rollout struct {
	namespace, strategy, pod, claim, volume string
	replicas                                int
	nodes                                   []string
}

func (r rollout) responses(t *testing.T) map[string]checktest.Response {
	t.Helper()
	deployment := fmt.Sprintf("{metadata: {namespace: %s, name: registry}, spec: {replicas: %d, strategy: %s, template: {spec: %s}}, "+
		"status: {replicas: %d}}", r.namespace, r.replicas, r.strategy, r.pod, r.replicas)
	var volumes []string
	if r.volume != "" {
		volumes = append(volumes, fmt.Sprintf("{metadata: {name: v}, spec: {%s}}", r.volume))
	}
	responses := map[string]checktest.Response{}
	for path, list := range map[string]struct {
		kind    string
		objects []string
	}{
		"/apis/apps/v1/deployments": {"DeploymentList", []string{deployment}},
		nodesPath:                   {"NodeList", r.nodes},
		"/api/v1/persistentvolumeclaims": {
			"PersistentVolumeClaimList",
			[]string{fmt.Sprintf("{metadata: {namespace: %s, name: data}, spec: {volumeName: v, accessModes: [%s]}}", r.namespace, r.claim)},
		},
		"/api/v1/persistentvolumes": {"PersistentVolumeList", volumes},
	} {
		version := "v1"
		if path[:6] == "/apis/" {
			version = "apps/v1"
		}
		responses[path] = checktest.Pages(t, version, list.kind, parsed(t, list.objects))
	}
	return responses
}

func TestRollingUpdates(t *testing.T) {
	const (
		rolling = "{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}"
		claimed = "{containers: [{name: a}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}"
		port    = "{containers: [{name: a, ports: [{containerPort: 80, hostPort: 80}]}]}"
		disk    = "csi: {driver: ebs.csi.aws.com, volumeHandle: a}"
	)
	two := []string{"{metadata: {name: a, labels: {kubernetes.io/hostname: a}}}", "{metadata: {name: b, labels: {kubernetes.io/hostname: b}}}"}
	local := disk + ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, " +
		"values: [a]}]}]}}"
	registry := rollout{
		namespace: "openshift-image-registry", strategy: rolling, pod: claimed, claim: "ReadWriteOnce", volume: disk,
		replicas: 1, nodes: two,
	}
	with := func(change func(*rollout)) rollout {
		changed := registry
		change(&changed)
		return changed
	}
	for name, tc := range map[string]struct {
		reason  string
		of      rollout
		waits   bool
		message string
	}{
		"Registry": {
			reason: "report 116: the next pod cannot attach the volume on another node", of: registry, waits: true,
			message: `PersistentVolumeClaim "data" is ReadWriteOnce`,
		},
		"Unknown": {reason: "a volume that is not known may move", of: with(func(r *rollout) { r.volume = "" }), waits: true},
		"OfOnePod": {
			reason: "a second pod is not scheduled even on the same node",
			of:     with(func(r *rollout) { r.claim, r.nodes = "ReadWriteOncePod", two[:1] }), waits: true,
		},
		"Recreate": {reason: "the old pod ends first", of: with(func(r *rollout) { r.strategy = "{type: Recreate}" })},
		"Unavailable": {reason: "one pod may be unavailable", of: with(func(r *rollout) {
			r.strategy = "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}"
		})},
		"NoSurge": {reason: "both are 0, so one may be unavailable", of: with(func(r *rollout) {
			r.strategy = "{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 25%}}"
		})},
		"Four":       {reason: "a quarter of four is one", of: with(func(r *rollout) { r.replicas = 4 })},
		"Shared":     {reason: "a shared file system", of: with(func(r *rollout) { r.claim = "ReadWriteOnce, ReadWriteMany" })},
		"Local":      {reason: "the volume is on one node, and the next pod comes to it", of: with(func(r *rollout) { r.volume = local })},
		"HostPath":   {reason: "so is a path of the host", of: with(func(r *rollout) { r.volume = "hostPath: {path: /a}" })},
		"SingleNode": {reason: "there is no other node", of: with(func(r *rollout) { r.nodes = two[:1] })},
		"OneEligible": {reason: "no other node takes the pod", of: with(func(r *rollout) {
			r.nodes = []string{two[0], "{metadata: {name: b, labels: {kubernetes.io/hostname: b}}, spec: {taints: [{key: infra, effect: " +
				"NoSchedule}]}}"}
		})},
		"OfUsers": {reason: "Deployments of users are not changed by an update", of: with(func(r *rollout) { r.namespace = "shop" })},
		"Ports": {
			reason: "each node has the port in use", of: with(func(r *rollout) { r.pod, r.replicas = port, 2 }), waits: true,
			message: "host port 80",
		},
		"NoNode": {
			reason: "without a node that takes the pod, nothing says that a port is in use",
			of:     with(func(r *rollout) { r.pod, r.replicas, r.nodes = port, 2, nil }),
		},
		"PortsFree": {reason: "a third node has it free", of: with(func(r *rollout) {
			r.pod, r.replicas, r.nodes = port, 2, append(two, "{metadata: {name: c, labels: {kubernetes.io/hostname: c}}}")
		})},
		"NoneScaled": {reason: "no pod runs", of: with(func(r *rollout) { r.replicas = 0 })},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checktest.Run(t, health.RollingUpdates(), server.Responding(tc.of.responses(t)).Snapshot(t), patch(t))
			want := results{"RollingUpdates": result(preflight.Pass, "AsExpected")}
			if tc.waits {
				want = results{"RollingUpdates-openshift-image-registry.registry": result(preflight.Warn, "NewPodWaitsForOld")}
			}
			if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			checktest.Contains(t, tc.reason, checktest.Messages(findings), []string{tc.message})
		})
	}
}
