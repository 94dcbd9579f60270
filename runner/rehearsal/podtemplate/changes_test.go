package podtemplate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/rehearsal/podtemplate"
)

// release is a Deployment as a manifest of the target has it, without defaults.
const release = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: openshift-example}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata:
      labels: {app: operator}
      annotations: {openshift.io/required-scc: restricted-v2}
    spec:
      serviceAccountName: operator
      priorityClassName: system-cluster-critical
      nodeSelector: {node-role.kubernetes.io/control-plane: ""}
      tolerations:
      - {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 120}
      initContainers:
      - {name: copy, image: quay.io/release@sha256:new, command: [cp]}
      containers:
      - name: operator
        image: quay.io/release@sha256:new
        command: [/usr/bin/operator, start]
        args: [--v=2]
        env:
        - {name: RELEASE, value: "4.21"}
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        ports: [{name: metrics, containerPort: 8443}]
        resources: {requests: {cpu: 10m, memory: 1Gi}}
        securityContext: {readOnlyRootFilesystem: true}
        livenessProbe: {httpGet: {path: /healthz, port: 8443}}
        volumeMounts: [{name: config, mountPath: /etc/config}]
      volumes:
      - {name: config, configMap: {name: config}}
`

// live is the Deployment of today as the API server returns it, with the defaults of templates.
const live = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: openshift-example, uid: d8a1, generation: 3}
spec:
  replicas: 1
  selector: {matchLabels: {app: operator}}
  template:
    metadata:
      labels: {app: operator}
      annotations: {openshift.io/required-scc: restricted-v2}
    spec:
      serviceAccount: operator
      serviceAccountName: operator
      priorityClassName: system-cluster-critical
      nodeSelector: {node-role.kubernetes.io/control-plane: ""}
      restartPolicy: Always
      terminationGracePeriodSeconds: 30
      dnsPolicy: ClusterFirst
      schedulerName: default-scheduler
      securityContext: {}
      tolerations:
      - {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 120}
      initContainers:
      - {name: copy, image: quay.io/release@sha256:old, command: [cp], resources: {}, imagePullPolicy: IfNotPresent,
          terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
      containers:
      - name: operator
        image: quay.io/release@sha256:old
        imagePullPolicy: IfNotPresent
        command: [/usr/bin/operator, start]
        args: [--v=2]
        env:
        - {name: RELEASE, value: "4.20"}
        - {name: POD, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
        ports: [{name: metrics, containerPort: 8443, protocol: TCP}]
        resources: {requests: {cpu: 10m, memory: 1Gi}}
        securityContext: {readOnlyRootFilesystem: true}
        livenessProbe: {httpGet: {path: /healthz, port: 8443, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10,
            successThreshold: 1, failureThreshold: 3}
        volumeMounts: [{name: config, mountPath: /etc/config}]
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
      volumes:
      - {name: config, configMap: {name: config, defaultMode: 420}}
`

// admitted is the pod of release as the API server of OpenShift returns it.
const admitted = `
apiVersion: v1
kind: Pod
metadata:
  name: operator-6d4b75cb6d-abcde
  generateName: operator-6d4b75cb6d-
  namespace: openshift-example
  uid: 2c11
  labels: {app: operator, pod-template-hash: 6d4b75cb6d}
  annotations: {openshift.io/required-scc: restricted-v2, openshift.io/scc: restricted-v2,
      seccomp.security.alpha.kubernetes.io/pod: runtime/default}
spec:
  serviceAccount: operator
  serviceAccountName: operator
  priorityClassName: system-cluster-critical
  priority: 2000000000
  preemptionPolicy: PreemptLowerPriority
  nodeSelector: {node-role.kubernetes.io/control-plane: ""}
  restartPolicy: Always
  terminationGracePeriodSeconds: 30
  dnsPolicy: ClusterFirst
  enableServiceLinks: true
  schedulerName: default-scheduler
  imagePullSecrets: [{name: operator-dockercfg-x7k2p}]
  securityContext: {fsGroup: 1000350000, seLinuxOptions: {level: "s0:c19,c4"}, seccompProfile: {type: RuntimeDefault}}
  tolerations:
  - {key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 120}
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/memory-pressure, operator: Exists, effect: NoSchedule}
  initContainers:
  - name: copy
    image: quay.io/release@sha256:new
    imagePullPolicy: IfNotPresent
    command: [cp]
    resources: {}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true, runAsUser: 1000350000}
    volumeMounts: [{name: kube-api-access-x7k2p, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  containers:
  - name: operator
    image: quay.io/release@sha256:new
    imagePullPolicy: IfNotPresent
    command: [/usr/bin/operator, start]
    args: [--v=2]
    env:
    - {name: RELEASE, value: "4.21"}
    - {name: POD, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
    ports: [{name: metrics, containerPort: 8443, protocol: TCP}]
    resources: {requests: {cpu: 10m, memory: 1Gi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true,
        runAsNonRoot: true, runAsUser: 1000350000}
    livenessProbe: {httpGet: {path: /healthz, port: 8443, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1,
        failureThreshold: 3}
    volumeMounts:
    - {name: config, mountPath: /etc/config}
    - {name: kube-api-access-x7k2p, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  volumes:
  - {name: config, configMap: {name: config, defaultMode: 420}}
  - name: kube-api-access-x7k2p
    projected:
      defaultMode: 420
      sources:
      - {serviceAccountToken: {expirationSeconds: 3607, path: token}}
      - {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}
      - {downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}}
      - {configMap: {name: openshift-service-ca.crt, items: [{key: service-ca.crt, path: service-ca.crt}]}}
`

// world is a target and the cluster of today. A row changes it before the target is admitted.
type world struct {
	release, live   *appsv1.Deployment
	admitted, today *corev1.Pod
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{release: parse[appsv1.Deployment](t, release), live: parse[appsv1.Deployment](t, live)}
	w.admitted = parse[corev1.Pod](t, admitted)
	// The pod of today was created of the earlier release, and runs.
	w.today = parse[corev1.Pod](t, strings.NewReplacer(
		"sha256:new", "sha256:old", `"4.21"`, `"4.20"`, "x7k2p", "q9fzr", "c19,c4", "c26,c25", "6d4b75cb6d", "5f7d8c9b4f",
	).Replace(admitted))
	w.today.Annotations["k8s.ovn.org/pod-networks"], w.today.Annotations["k8s.v1.cni.cncf.io/network-status"] = "{}", "[]"
	w.running().NodeName, w.today.Status.Phase = "master-0", corev1.PodRunning
	return w
}

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	found := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), found); err != nil {
		t.Fatal(err)
	}
	return found
}

func templateOf(t *testing.T, deployment *appsv1.Deployment) podtemplate.Template {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		t.Fatal(err)
	}
	template, ok, err := podtemplate.Of(&unstructured.Unstructured{Object: content})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return template
}

// changes are those of a world as texts, with and without the pod of today.
func (w *world) changes(t *testing.T, today *podtemplate.Sample) []string {
	t.Helper()
	var found []string
	for _, change := range podtemplate.Changes(templateOf(t, w.release).Pod(), w.admitted, today) {
		found = append(found, change.String())
	}
	return found
}

func sidecar(name string) corev1.Container {
	return corev1.Container{
		Name: name, Image: "example.org/" + name, TerminationMessagePath: "/dev/termination-log", ImagePullPolicy: corev1.PullIfNotPresent,
		Env:          []corev1.EnvVar{{Name: "A", Value: "a"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x7k2p", MountPath: "/var/run/secrets"}},
	}
}

func (w *world) inject(pod *corev1.Pod, containers ...corev1.Container) {
	pod.Spec.Containers = append(pod.Spec.Containers, containers...)
}

// next and now are the pods of the target, as sent and as admitted.
func (w *world) next() *corev1.PodSpec { return &w.release.Spec.Template.Spec }
func (w *world) now() *corev1.PodSpec  { return &w.admitted.Spec }

// before and running are those of today.
func (w *world) before() *corev1.PodSpec  { return &w.live.Spec.Template.Spec }
func (w *world) running() *corev1.PodSpec { return &w.today.Spec }

// brings adds a container to the target, and to the admitted pod with what admission adds to every container.
func (w *world) brings(name string) {
	brought := corev1.Container{Name: name, Image: "quay.io/release@sha256:new", Env: []corev1.EnvVar{{Name: "RELEASE", Value: "4.21"}}}
	w.next().Containers = append(w.next().Containers, brought)
	all := w.now().Containers[0].DeepCopy()
	all.Name, all.Env, all.Resources = name, all.Env[:1], corev1.ResourceRequirements{}
	all.Command, all.Args, all.Ports, all.LivenessProbe = nil, nil, nil, nil
	all.SecurityContext.ReadOnlyRootFilesystem, all.VolumeMounts = nil, all.VolumeMounts[1:]
	w.now().Containers = append(w.now().Containers, *all)
}

// rewrite has the image of each container from a mirror, as a webhook does.
func rewrite(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Image = strings.Replace(containers[i].Image, "quay.io", "mirror.example.org", 1)
		}
	}
}

func setEnv(pod *corev1.Pod, container int, name, value string) {
	pod.Spec.Containers[container].Env = append(pod.Spec.Containers[container].Env, corev1.EnvVar{Name: name, Value: value})
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const app = `spec.containers["operator"]`
	istio := []string{`spec.containers["istio-proxy"]: added`}
	for name, row := range map[string]struct {
		reason string
		change func(*world)
		want   []string
		// fresh is what is a change where nothing of the workload is running.
		fresh []string
	}{
		"None": {
			reason: "defaults, SCC, token volume, priority, pull secrets and tolerations are on the pod of today as well",
			change: func(*world) {},
		},
		"Sidecar": {
			reason: "a webhook injects a container since today's pod was created",
			change: func(w *world) {
				w.inject(w.admitted, sidecar("istio-proxy"))
			},
			want:  istio,
			fresh: istio,
		},
		"SidecarToday": {
			reason: "today's pod has it, too, in an earlier version",
			change: func(w *world) {
				w.inject(w.admitted, sidecar("istio-proxy"))
				earlier := sidecar("istio-proxy")
				earlier.Image, earlier.Env = "example.org/earlier", nil
				w.inject(w.today, earlier)
			},
			fresh: istio,
		},
		"OtherSidecar": {
			reason: "today's pod has another one",
			change: func(w *world) {
				w.inject(w.admitted, sidecar("istio-proxy"))
				w.inject(w.today, sidecar("linkerd-proxy"))
			},
			want:  istio,
			fresh: istio,
		},
		"SidecarNamedAsContainer": {
			reason: "the target has no such container any more, and a webhook adds one",
			change: func(w *world) {
				w.before().Containers = append(w.before().Containers, sidecar("istio-proxy"))
				w.inject(w.today, sidecar("istio-proxy"))
				w.inject(w.admitted, sidecar("istio-proxy"))
			},
			want:  istio,
			fresh: istio,
		},
		"InitContainer": {
			reason: "a webhook injects an init container",
			change: func(w *world) {
				w.now().InitContainers = append([]corev1.Container{sidecar("istio-init")}, w.now().InitContainers...)
			},
			want:  []string{`spec.initContainers["istio-init"]: added`},
			fresh: []string{`spec.initContainers["istio-init"]: added`},
		},
		"InitContainerToday": {
			reason: "today's pod has it as a container, and it became an init container",
			change: func(w *world) {
				w.now().InitContainers = append(w.now().InitContainers, sidecar("istio-proxy"))
				w.inject(w.today, sidecar("istio-proxy"))
			},
			want:  []string{`spec.initContainers["istio-proxy"]: added`},
			fresh: []string{`spec.initContainers["istio-proxy"]: added`},
		},
		"NewContainer": {
			reason: "the target has a container more, which gets what all get",
			change: func(w *world) { w.brings("proxy") },
		},
		"NewInitContainer": {
			reason: "the target has its first init container: it gets what containers get",
			change: func(w *world) {
				w.before().InitContainers, w.running().InitContainers = nil, nil
			},
		},
		"NewContainerChanged": {
			reason: "the command of the container that only the target has is another one",
			change: func(w *world) {
				w.brings("proxy")
				w.now().Containers[1].Command = []string{"sh"}
			},
			want:  []string{`spec.containers["proxy"].command: [sh]`},
			fresh: []string{`spec.containers["proxy"].command: [sh]`},
		},
		"NewContainerBesideSidecar": {
			reason: "the sidecar of today is no container of the template, which get no command",
			change: func(w *world) {
				w.brings("proxy")
				w.now().Containers[1].Command = []string{"sh"}
				injected := sidecar("istio-proxy")
				injected.Command = []string{"envoy"}
				w.inject(w.admitted, injected)
				w.inject(w.today, injected)
			},
			want:  []string{`spec.containers["proxy"].command: [sh]`},
			fresh: []string{`spec.containers["istio-proxy"]: added`, `spec.containers["proxy"].command: [sh]`},
		},
		"NewContainerLikeAll": {
			reason: "a webhook adds a variable to each container, today as well",
			change: func(w *world) {
				w.brings("proxy")
				setEnv(w.admitted, 0, "CLUSTER", "a")
				setEnv(w.admitted, 1, "CLUSTER", "a")
				setEnv(w.today, 0, "CLUSTER", "b")
			},
			fresh: []string{app + `.env["CLUSTER"]: added`, `spec.containers["proxy"].env["CLUSTER"]: added`},
		},
		"Mirror": {
			reason: "a webhook has images from a mirror, today not yet", change: func(w *world) { rewrite(w.admitted) },
			want: []string{
				app + ".image: mirror.example.org/release@sha256:new",
				`spec.initContainers["copy"].image: mirror.example.org/release@sha256:new`,
			},
			fresh: []string{
				app + ".image: mirror.example.org/release@sha256:new",
				`spec.initContainers["copy"].image: mirror.example.org/release@sha256:new`,
			},
		},
		"MirrorToday": {
			reason: "today as well",
			change: func(w *world) {
				rewrite(w.admitted)
				rewrite(w.today)
			},
			fresh: []string{
				app + ".image: mirror.example.org/release@sha256:new",
				`spec.initContainers["copy"].image: mirror.example.org/release@sha256:new`,
			},
		},
		"MirrorOfOneToday": {
			reason: "today only that of another container", change: func(w *world) {
				rewrite(w.admitted)
				w.running().InitContainers[0].Image = "mirror.example.org/release@sha256:old"
			}, want: []string{app + ".image: mirror.example.org/release@sha256:new"},
			fresh: []string{
				app + ".image: mirror.example.org/release@sha256:new",
				`spec.initContainers["copy"].image: mirror.example.org/release@sha256:new`,
			},
		},
		"Env": {
			reason: "a variable that today has not", change: func(w *world) { setEnv(w.admitted, 0, "HTTP_PROXY", "http://user:secret@proxy") },
			want:  []string{app + `.env["HTTP_PROXY"]: added`},
			fresh: []string{app + `.env["HTTP_PROXY"]: added`},
		},
		"EnvOfTemplate": {
			reason: "the target has no such variable any more, and a webhook adds one",
			change: func(w *world) {
				setEnv(w.admitted, 0, "HTTP_PROXY", "new")
				setEnv(w.today, 0, "HTTP_PROXY", "old")
				w.before().Containers[0].Env = append(w.before().Containers[0].Env, corev1.EnvVar{Name: "HTTP_PROXY", Value: "old"})
			},
			want:  []string{app + `.env["HTTP_PROXY"]: added`},
			fresh: []string{app + `.env["HTTP_PROXY"]: added`},
		},
		"EnvValue": {
			reason: "the value of a variable is another one; it may be secret",
			change: func(w *world) {
				w.now().Containers[0].Env[0].Value = "secret"
			},
			want:  []string{app + `.env["RELEASE"].value: changed`},
			fresh: []string{app + `.env["RELEASE"].value: changed`},
		},
		"EnvGetsValue": {
			reason: "a variable without a value gets one", change: func(w *world) { w.next().Containers[0].Env[0].Value = "" },
			want:  []string{app + `.env["RELEASE"].value: added`},
			fresh: []string{app + `.env["RELEASE"].value: added`},
		},
		"EnvRemoved": {
			reason: "a variable is missing", change: func(w *world) { w.now().Containers[0].Env = w.now().Containers[0].Env[1:] },
			want:  []string{app + `.env["RELEASE"]: removed`},
			fresh: []string{app + `.env["RELEASE"]: removed`},
		},
		"NewEnv": {
			reason: "a variable of the target gets a default that no variable of today has",
			change: func(w *world) {
				w.before().Containers[0].Env, w.running().Containers[0].Env = w.before().Containers[0].Env[:1], w.running().Containers[0].Env[:1]
			},
		},
		"Command": {
			reason: "a debugger starts the operator",
			change: func(w *world) {
				w.now().Containers[0].Command = []string{"strace", "-f", "operator"}
			},
			want:  []string{app + ".command: [strace -f operator]"},
			fresh: []string{app + ".command: [strace -f operator]"},
		},
		"CommandAdded": {
			reason: "a command where the image had its own", change: func(w *world) { w.next().Containers[0].Command = nil },
			want:  []string{app + ".command: [/usr/bin/operator start]"},
			fresh: []string{app + ".command: [/usr/bin/operator start]"},
		},
		"Args": {
			reason: "an argument more, the value is bounded",
			change: func(w *world) {
				w.now().Containers[0].Args = []string{strings.Repeat("x", 200)}
			},
			want:  []string{app + ".args: [" + strings.Repeat("x", 96) + "…"},
			fresh: []string{app + ".args: [" + strings.Repeat("x", 96) + "…"},
		},
		"Quantity": {
			reason: "the same quantities, written in another way",
			change: func(w *world) {
				w.next().Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1Gi")}
				requests := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1073741824")}
				w.now().Containers[0].Resources.Requests = requests
			},
		},
		"Resources": {
			reason: "a webhook lowers a request", change: func(w *world) {
				w.now().Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
			},
			want: []string{app + `.resources.requests["memory"]: 64Mi`},
		},
		"Limits": {
			reason: "a LimitRange sets a limit", change: func(w *world) {
				w.now().Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
			},
			want: []string{app + `.resources.limits["cpu"]: 1`},
		},
		"LimitsOfTarget": {
			reason: "the API server takes the limits of the target for requests",
			change: func(w *world) {
				w.next().Containers[0].Resources.Limits = corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")}
				w.now().Containers[0].Resources.Limits = w.next().Containers[0].Resources.Limits
				w.now().Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("1Gi")
			},
		},
		"Privileged": {
			reason: "another value of a security context",
			change: func(w *world) {
				w.now().Containers[0].SecurityContext.Privileged = new(true)
			},
			want: []string{app + ".securityContext.privileged: true"},
		},
		"AgainstTarget": {
			reason: "the SCC of today sets the user, and a webhook another one than the target",
			change: func(w *world) {
				w.next().Containers[0].SecurityContext.RunAsUser, w.now().Containers[0].SecurityContext.RunAsUser = new(int64(1000)), new(int64(0))
			},
			want: []string{app + ".securityContext.runAsUser: 0"},
		},
		"AgainstTargetToday": {
			reason: "the target sets the variable that a webhook sets today, to the same value",
			change: func(w *world) {
				setEnv(w.admitted, 0, "REGION", "a")
				setEnv(w.today, 0, "REGION", "a")
				w.next().Containers[0].Env = append(w.next().Containers[0].Env, corev1.EnvVar{Name: "REGION", Value: "b"})
			},
			fresh: []string{app + `.env["REGION"].value: changed`},
		},
		"Reverted": {
			reason: "a webhook keeps the image of today", change: func(w *world) { w.now().Containers[0].Image = "quay.io/release@sha256:old" },
			want:  []string{app + ".image: quay.io/release@sha256:old"},
			fresh: []string{app + ".image: quay.io/release@sha256:old"},
		},
		"NoUserAnyMore": {
			reason: "today's template states the user, and that of the target leaves it to the SCC",
			change: func(w *world) {
				w.before().Containers[0].SecurityContext.RunAsUser = new(int64(65534))
				w.running().Containers[0].SecurityContext.RunAsUser = new(int64(65534))
			},
		},
		"NewContainerWithDefault": {
			reason: "no container of today has the default",
			change: func(w *world) {
				w.brings("proxy")
				w.next().Containers[1].LivenessProbe = w.next().Containers[0].LivenessProbe
				w.now().Containers[1].LivenessProbe = w.now().Containers[0].LivenessProbe.DeepCopy()
				w.before().Containers[0].LivenessProbe.FailureThreshold, w.running().Containers[0].LivenessProbe.FailureThreshold = 9, 9
				w.next().Containers[0].LivenessProbe = w.before().Containers[0].LivenessProbe
				w.now().Containers[0].LivenessProbe = w.before().Containers[0].LivenessProbe
			},
		},
		"EnvFrom": {
			reason: "variables of a Secret, beside those of another one",
			change: func(w *world) {
				from := func(names ...string) []corev1.EnvFromSource {
					var found []corev1.EnvFromSource
					for _, name := range names {
						source := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{}}
						source.SecretRef.Name = name
						found = append(found, source)
					}
					return found
				}
				w.next().Containers[0].EnvFrom = from("own")
				w.before().Containers[0].EnvFrom, w.running().Containers[0].EnvFrom = from("own"), from("own")
				w.now().Containers[0].EnvFrom = from("vault", "own")
			},
			want:  []string{app + `.envFrom["vault"]: added`},
			fresh: []string{app + `.envFrom["vault"]: added`},
		},
		"Duplicates": {
			reason: "the API server merges what a pod tolerates twice",
			change: func(w *world) {
				w.next().Tolerations = append(w.next().Tolerations, w.next().Tolerations[0])
			},
		},
		"TokenOfTarget": {
			reason: "the target has a token where today's template has none",
			change: func(w *world) {
				w.before().AutomountServiceAccountToken, w.running().AutomountServiceAccountToken = new(false), new(false)
				w.running().Volumes = w.running().Volumes[:1]
				for _, containers := range [][]corev1.Container{w.running().InitContainers, w.running().Containers} {
					containers[0].VolumeMounts = containers[0].VolumeMounts[:len(containers[0].VolumeMounts)-1]
				}
			},
		},
		"PullSecretsLater": {
			reason: "today's pod is older than the secrets of its account, as some of an installation are",
			change: func(w *world) { w.running().ImagePullSecrets = nil },
		},
		"HostUsers": {
			reason: "a field of the pod",
			change: func(w *world) { w.now().HostUsers = new(false) },
			want:   []string{"spec.hostUsers: false"},
		},
		"Affinity": {
			reason: "an object that today has not is one change",
			change: func(w *world) {
				w.now().Affinity = literal[corev1.Affinity](`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
                    {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}`)
			},
			want: []string{"spec.affinity: added"},
		},
		"Level": {
			reason: "the values of the SCC differ, the fields do not",
			change: func(w *world) { w.now().SecurityContext.SELinuxOptions.Level = "s0:c1,c2" },
		},
		"Unconfined": {
			reason: "no value of the SCC", change: func(w *world) { w.now().SecurityContext.SELinuxOptions.Type = "spc_t" },
			want: []string{"spec.securityContext.seLinuxOptions.type: spc_t"},
		},
		"Toleration": {
			reason: "a webhook lets it run elsewhere",
			change: func(w *world) {
				w.now().Tolerations = append(w.now().Tolerations, corev1.Toleration{Key: "infra", Operator: corev1.TolerationOpExists})
			},
			want: []string{`spec.tolerations["infra"]: added`},
		},
		"TolerationOfTarget": {
			reason: "the target tolerates no longer itself what the API server then adds",
			change: func(w *world) {
				w.next().Tolerations = w.next().Tolerations[:1]
			},
		},
		"NodeSelector": {
			reason: "the selector of the project",
			change: func(w *world) { w.now().NodeSelector["zone"] = "a" },
			want:   []string{`spec.nodeSelector["zone"]: a`},
		},
		"FirstNodeSelector": {
			reason: "today has no selector, and the target has one",
			change: func(w *world) {
				w.before().NodeSelector, w.running().NodeSelector = nil, nil
				w.now().NodeSelector["zone"] = ""
			},
			want: []string{`spec.nodeSelector["zone"]: ""`},
		},
		"Priority": {
			reason: "the class has another value",
			change: func(w *world) { w.now().Priority = new(int32(5)) },
		},
		"PriorityClass": {
			reason: "a webhook lowers the class", change: func(w *world) { w.now().PriorityClassName = "low" },
			want: []string{"spec.priorityClassName: low"},
		},
		"Label": {
			reason: "a label that today has not",
			change: func(w *world) { w.admitted.Labels["team"] = "a" },
			want:   []string{`metadata.labels["team"]: a`},
		},
		"LabelToday": {
			reason: "a label that today has with another value",
			change: func(w *world) {
				w.admitted.Labels["team"], w.today.Labels["team"] = "a", "b"
			},
		},
		"Annotation": {
			reason: "an annotation that today has not, with a text that a terminal would execute",
			change: func(w *world) {
				w.admitted.Annotations["example.org/x"] = "a\x1b[31m\nb"
			},
			want: []string{`metadata.annotations["example.org/x"]: a b`},
		},
		"Volume": {
			reason: "a volume with its mount",
			change: func(w *world) {
				w.now().Volumes = append(w.now().Volumes, corev1.Volume{Name: "ca"})
				w.now().Containers[0].VolumeMounts = append(w.now().Containers[0].VolumeMounts, corev1.VolumeMount{Name: "ca", MountPath: "/ca"})
			},
			want: []string{app + `.volumeMounts["/ca"]: added`, `spec.volumes["ca"]: added`},
		},
		"TokenVolume": {
			reason: "a volume with a token that a webhook adds has a name of its own",
			change: func(w *world) {
				token := w.now().Volumes[1].DeepCopy()
				token.Name = "aws-iam-token"
				w.now().Volumes = append(w.now().Volumes, *token)
			},
			want: []string{`spec.volumes["aws-iam-token"]: added`},
		},
		"NewVolume": {
			reason: "a volume of the target gets defaults of a source that today has not",
			change: func(w *world) {
				w.next().Volumes = append(w.next().Volumes, *literal[corev1.Volume]("{name: host, hostPath: {path: /etc}}"))
				w.now().Volumes = append(w.now().Volumes, *literal[corev1.Volume](`{name: host, hostPath: {path: /etc, type: ""}}`))
			},
		},
		"NewProbe": {
			reason: "a probe of the target gets defaults, and today has none of its kind",
			change: func(w *world) {
				w.next().Containers[0].ReadinessProbe = literal[corev1.Probe]("{tcpSocket: {port: 8443}}")
				w.now().Containers[0].ReadinessProbe = literal[corev1.Probe](
					"{tcpSocket: {port: 8443}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}")
			},
		},
		"NewPort": {
			reason: "a port of the target gets its protocol",
			change: func(w *world) {
				w.next().Containers[0].Ports = append(w.next().Containers[0].Ports, corev1.ContainerPort{ContainerPort: 80})
				w.now().Containers[0].Ports = append(w.now().Containers[0].Ports, corev1.ContainerPort{ContainerPort: 80, Protocol: corev1.ProtocolTCP})
			},
		},
		"Probe": {
			reason: "a mesh rewrites the probe", change: func(w *world) { w.now().Containers[0].LivenessProbe.HTTPGet.Path = "/app-health" },
			want: []string{app + ".livenessProbe.httpGet.path: /app-health"},
		},
		"ProbeRemoved": {
			reason: "a probe is missing",
			change: func(w *world) { w.now().Containers[0].LivenessProbe = nil },
			want:   []string{app + ".livenessProbe: removed"},
		},
		"FieldRemoved": {
			reason: "a field is missing", change: func(w *world) { w.now().Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil },
			want: []string{app + ".securityContext.readOnlyRootFilesystem: removed"},
		},
		"FieldRemovedToday": {
			reason: "today as well",
			change: func(w *world) {
				w.now().Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil
				w.running().Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil
			},
		},
		"ObjectRemovedToday": {
			reason: "today's webhook removes the whole request, too, as for pods of reserved CPUs",
			change: func(w *world) {
				w.now().Containers[0].Resources.Requests, w.running().Containers[0].Resources.Requests = nil, nil
			},
		},
		"ContainerRemoved": {
			reason: "a container is missing", change: func(w *world) { w.now().InitContainers = nil },
			want:  []string{`spec.initContainers["copy"]: removed`},
			fresh: []string{`spec.initContainers["copy"]: removed`},
		},
		"PullSecret": {
			reason: "another account has another secret",
			change: func(w *world) { w.now().ImagePullSecrets[0].Name = "other-dockercfg" },
		},
		"PullSecrets": {
			reason: "a second secret is added as the first one",
			change: func(w *world) {
				w.now().ImagePullSecrets = append(w.now().ImagePullSecrets, corev1.LocalObjectReference{Name: "second"})
			},
		},
		"EphemeralContainer": {
			reason: "today's pod is being debugged",
			change: func(w *world) {
				debug := corev1.EphemeralContainer{}
				debug.Name = "debug"
				w.running().EphemeralContainers = []corev1.EphemeralContainer{debug}
			},
		},
		"Stored": {
			reason: "the template of the target comes with defaults, as the dry run of its write returned it",
			change: func(w *world) {
				images := w.release.DeepCopy()
				w.release.Spec = *w.live.Spec.DeepCopy()
				w.next().Containers[0].Image = images.Spec.Template.Spec.Containers[0].Image
				w.next().InitContainers[0].Image = images.Spec.Template.Spec.InitContainers[0].Image
				w.next().Containers[0].Env[0].Value = "4.21"
			},
		},
		"ManifestToday": {
			reason: "the template of today comes without defaults",
			change: func(w *world) {
				w.live.Spec = *w.release.Spec.DeepCopy()
			},
			want: nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			row.change(w)
			today := &podtemplate.Sample{Template: templateOf(t, w.live), Pod: w.today}
			if diff := cmp.Diff(row.want, w.changes(t, today)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(row.fresh, w.changes(t, nil)); diff != "" {
				t.Errorf("%s, and nothing is running (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// literal is a part of a pod.
func literal[T any](text string) *T {
	found := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), found); err != nil {
		panic(err)
	}
	return found
}

// TestManyChanges checks that containers are not lost among other changes.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 30 {
		w.admitted.Annotations[fmt.Sprintf("a%02d", i)] = ""
	}
	w.inject(w.admitted, sidecar("istio-proxy"))
	found := w.changes(t, &podtemplate.Sample{Template: templateOf(t, w.live), Pod: w.today})
	if len(found) != 20 || !slices.IsSorted(found) || found[19] != `spec.containers["istio-proxy"]: added` {
		t.Errorf("%d changes: %q", len(found), found)
	}
}

// TestNothingToCompare checks that what is missing is no change.
func TestNothingToCompare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inject(w.admitted, sidecar("istio-proxy"))
	sent := templateOf(t, w.release).Pod()
	if got := slices.Concat(podtemplate.Changes(nil, w.admitted, nil), podtemplate.Changes(sent, nil, nil)); len(got) > 0 {
		t.Errorf("changes of an absent pod: %v", got)
	}
	for _, today := range []*podtemplate.Sample{{}, {Pod: w.today}, {Template: templateOf(t, w.live)}} {
		if got := podtemplate.Changes(sent, w.admitted, today); len(got) != 1 {
			t.Errorf("%d changes, want the sidecar: half a sample is none", len(got))
		}
	}
}
