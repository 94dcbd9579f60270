package alteration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// apartOfPod are the fields of a pod that a policy does not compare by equality: any value is harmless, or has a rule of
// its own. They are those that acceptPod accepts.
func apartOfPod() []string {
	return []string{
		"activeDeadlineSeconds", "containers", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "preemptionPolicy",
		"priority", "priorityClassName", "readinessGates", "resources", "schedulerName", "schedulingGates", "securityContext",
		"serviceAccount", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes",
	}
}

// apartOfContainer are the fields of a container that acceptContainer accepts.
func apartOfContainer() []string {
	return []string{"env", "image", "imagePullPolicy", "name", "resizePolicy", "resources", "securityContext", "volumeMounts"}
}

// nothingExpected is the expectation for the pod of another Job of the run, such as one that pulls images.
func nothingExpected() map[string]any {
	e := map[string]any{"known": false}
	for _, key := range []string{"labels", "annotations", "spec", "security", "selector", "volumes"} {
		e[key] = map[string]any{}
	}
	for _, key := range []string{"tolerations", "initContainers", "containers", "scratch"} {
		e[key] = []any{}
	}
	return e
}

// expected is the expected pod of a Job, with the defaults of the API server.
func expected(job *batchv1.Job) (map[string]any, error) {
	spec := job.Spec.Template.Spec.DeepCopy()
	setDefaults(spec)
	spec.ServiceAccountName = jobplan.AccountOf(*spec)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("could not describe the pod of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	e := nothingExpected()
	e["known"], e["labels"], e["annotations"] = true, values(job.Spec.Template.Labels), values(NodeAnnotations(job.Spec.Template.Annotations))
	for key, field := range map[string]string{"security": "securityContext", "selector": "nodeSelector", "tolerations": "tolerations"} {
		if fields[field] != nil {
			e[key] = fields[field]
		}
	}
	for _, key := range []string{"initContainers", "containers"} {
		var containers []any
		for _, container := range elements(fields[key]) {
			containers = append(containers, expectedContainer(container))
		}
		e[key] = containers
	}
	e["volumes"], e["scratch"] = expectedVolumes(elements(fields["volumes"]))
	maps.DeleteFunc(fields, func(key string, _ any) bool { return slices.Contains(apartOfPod(), key) })
	e["spec"] = fields
	return e, nil
}

func expectedContainer(fields map[string]any) map[string]any {
	variables := []any{}
	for _, variable := range elements(fields["env"]) {
		if variable["name"] != jobplan.VariableDeadline { // a run that was taken over uses the deadline of its Job
			variables = append(variables, variable)
		}
	}
	e := map[string]any{
		"name": fields["name"], "image": digestOf(fields["image"]), "env": variables, "volumeMounts": []any{},
		"security": map[string]any{},
	}
	if mounts := fields["volumeMounts"]; mounts != nil {
		e["volumeMounts"] = mounts
	}
	if security := fields["securityContext"]; security != nil {
		e["security"] = security
	}
	maps.DeleteFunc(fields, func(key string, _ any) bool { return slices.Contains(apartOfContainer(), key) })
	e["fields"] = fields
	return e
}

// expectedVolumes returns the volumes by name, and the names of scratch volumes. For image volumes, the digest is
// compared.
func expectedVolumes(volumes []map[string]any) (byName map[string]any, scratch []any) {
	byName, scratch = map[string]any{}, []any{}
	for _, volume := range volumes {
		name, _ := volume["name"].(string)
		byName[name] = volume
		if image, ok := volume["image"].(map[string]any); ok {
			byName[name] = map[string]any{"digest": digestOf(image["reference"])}
		}
		if volume["emptyDir"] != nil {
			scratch = append(scratch, name)
		}
	}
	return byName, scratch
}

func elements(list any) []map[string]any {
	all, _ := list.([]any)
	objects := make([]map[string]any, 0, len(all))
	for _, each := range all {
		object, _ := each.(map[string]any)
		objects = append(objects, object)
	}
	return objects
}

// digestOf is the end of a pull spec by digest.
func digestOf(pullSpec any) string {
	text, _ := pullSpec.(string)
	_, digest, _ := strings.Cut(text, "@")
	return "@" + digest
}

// setDefaults sets the defaults of the API server below the fields that a policy compares by equality (Kubernetes
// pkg/apis/core/v1, defaults.go).
func setDefaults(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			setContainerDefaults(&containers[i])
		}
	}
	for i := range spec.Volumes {
		setVolumeDefaults(&spec.Volumes[i].VolumeSource)
	}
}

func setVolumeDefaults(source *corev1.VolumeSource) {
	switch {
	case source.ConfigMap != nil:
		source.ConfigMap.DefaultMode = or(source.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case source.Secret != nil:
		source.Secret.DefaultMode = or(source.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case source.DownwardAPI != nil:
		source.DownwardAPI.DefaultMode = or(source.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		setItemDefaults(source.DownwardAPI.Items)
	case source.Projected != nil:
		source.Projected.DefaultMode = or(source.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for _, projection := range source.Projected.Sources {
			if projection.DownwardAPI != nil {
				setItemDefaults(projection.DownwardAPI.Items)
			}
			if token := projection.ServiceAccountToken; token != nil {
				token.ExpirationSeconds = or(token.ExpirationSeconds, 3600)
			}
		}
	}
}

func setItemDefaults(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil && items[i].FieldRef.APIVersion == "" {
			items[i].FieldRef.APIVersion = "v1"
		}
	}
}

func setContainerDefaults(container *corev1.Container) {
	for i := range container.Ports {
		if container.Ports[i].Protocol == "" {
			container.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	for i := range container.Env {
		if from := container.Env[i].ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.APIVersion == "" {
			from.FieldRef.APIVersion = "v1"
		}
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		setProbeDefaults(probe)
	}
	if container.Lifecycle == nil {
		return
	}
	for _, hook := range []*corev1.LifecycleHandler{container.Lifecycle.PostStart, container.Lifecycle.PreStop} {
		if hook != nil {
			setRequestDefaults(hook.HTTPGet)
		}
	}
}

func setProbeDefaults(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	setRequestDefaults(probe.HTTPGet)
	if probe.GRPC != nil {
		probe.GRPC.Service = or(probe.GRPC.Service, "")
	}
	for _, field := range []struct {
		of        *int32
		byDefault int32
	}{{&probe.TimeoutSeconds, 1}, {&probe.PeriodSeconds, 10}, {&probe.SuccessThreshold, 1}, {&probe.FailureThreshold, 3}} {
		if *field.of == 0 {
			*field.of = field.byDefault
		}
	}
}

func setRequestDefaults(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	if get.Path == "" {
		get.Path = "/"
	}
	if get.Scheme == "" {
		get.Scheme = corev1.URISchemeHTTP
	}
}

func or[T any](set *T, byDefault T) *T {
	if set == nil {
		return &byDefault
	}
	return set
}
