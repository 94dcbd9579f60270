package alteration

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
)

// Prevention is the part of an admission policy that denies pods of a planned run if they differ from their Job in a
// field that OfPod compares, except for the deadline of the run. It is evaluated after all changes by admission, and
// before the pod exists. Its text grows with the differences between the Jobs.
//
// A pod belongs to the Job that controls it, which its labels and its name must confirm. For a pod of another Job of
// the run, such as one that pulls images, only actions on the node are denied. An update that changes neither the spec
// nor the annotations is not evaluated.
func Prevention(plan jobplan.Plan) ([]admissionregistrationv1.Variable, []admissionregistrationv1.Validation, error) {
	jobs := []map[string]any{nothingExpected()}
	for _, check := range plan.Checks {
		e, err := expected(check.Job)
		if err != nil {
			return nil, nil, err
		}
		jobs = append(jobs, e)
	}
	texts, variables := ofAll(jobs)
	add := func(name, expression string) {
		variables = append(variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
	}
	add("owners", "object.metadata.?ownerReferences.orValue([]).filter(o, o.kind == 'Job' && o.apiVersion == 'batch/v1' && "+
		"o.?controller.orValue(false))")
	add("job", "size(variables.owners) == 1 ? variables.owners[0].name : ''")
	add("key", "request.namespace + '/' + variables.job")
	for i, text := range texts {
		add(fmt.Sprintf("job%d", i), text)
	}
	// An expression has a limited depth.
	const perGroup = 100
	known := "variables.job0"
	for begin := 0; begin < len(plan.Checks); begin += perGroup {
		group := plan.Checks[begin:min(begin+perGroup, len(plan.Checks))]
		var keys []string
		chosen := "variables.job0"
		for i := range group {
			key := fmt.Sprintf("%q", group[i].Job.Namespace+"/"+group[i].Job.Name)
			keys = append(keys, key)
			chosen = fmt.Sprintf("variables.key == %s ? variables.job%d : (%s)", key, begin+i+1, chosen)
		}
		name := fmt.Sprintf("group%d", begin/perGroup)
		add(name, chosen)
		known = fmt.Sprintf("variables.key in [%s] ? variables.%s : (%s)", strings.Join(keys, ", "), name, known)
	}
	add("plan", known)
	for _, each := range comparisons() {
		add(each.name, filled(each.expression, plan.Run.Suffix()))
	}
	return variables, []admissionregistrationv1.Validation{{
		Expression:        "variables.unchanged || size(variables.altered) == 0",
		MessageExpression: "'" + Prevented + ", but a mutating webhook or policy of the cluster changes ' + variables.altered[0]",
	}}, nil
}

// Prevented begins the reason for which the policy denies a pod.
const Prevented = "the pod of a preflight runs as planned"

type comparison struct{ name, expression string }

// comparisons are the variables that compare a pod with the plan; the last one has all altered fields.
func comparisons() []comparison {
	all := []comparison{
		{"unchanged", "request.operation == 'UPDATE' && object.spec == oldObject.spec && object.metadata.?annotations.orValue({}) == " +
			"oldObject.metadata.?annotations.orValue({})"},
		{"volumes", "object.spec.?volumes.orValue([])"},
		{"tokens", `variables.volumes.filter(v, !(v.name in variables.plan.volumes) && has(v.projected) && v.projected.?sources.orValue([]).all(s,
			s in KNOWN_SOURCES || size(s) == 1 && has(s.serviceAccountToken) && s.serviceAccountToken.path == 'token' &&
			s.serviceAccountToken.all(k, k in ['path', 'expirationSeconds']))).map(v, v.name)`},
		{"inMetadata", `request.operation != 'CREATE' ? [] : ['metadata.ownerReferences'].filter(x, variables.job == '') +
			['metadata.generateName'].filter(x, object.metadata.?generateName.orValue('') != variables.job + '-') +
			['metadata.name'].filter(x, !object.metadata.?name.orValue(variables.job + '-').startsWith(variables.job + '-')) +
			['batch.kubernetes.io/job-name'].filter(k, object.metadata.?labels.orValue({})[?k].orValue('') != variables.job).map(k, 'metadata.labels.' + k) +
			['batch.kubernetes.io/controller-uid'].filter(k, variables.job != '' && object.metadata.?labels.orValue({})[?k].orValue('') != variables.owners[0].uid).map(k, 'metadata.labels.' + k) +
			variables.plan.labels.filter(k, object.metadata.?labels.orValue({})[?k].orValue('') != variables.plan.labels[k]).map(k, 'metadata.labels.' + k)`},
		{
			"inAnnotations",
			`object.metadata.?annotations.orValue({}).filter(k, k.matches(NODE_ANNOTATIONS) && !(object.metadata.annotations[k] in DEFAULT_PROFILES) &&
			!(k in variables.plan.annotations && variables.plan.annotations[k] == object.metadata.annotations[k])).map(k, 'metadata.annotations.' + k)`,
		},
		{"inSpec", `(variables.plan.known ? object.spec.filter(k, !(k in APART_OF_POD || k == 'affinity' && !(k in variables.plan.spec) ||
			(k in variables.plan.spec ? object.spec[k] == variables.plan.spec[k] : k in POD_DEFAULTS && object.spec[k] in POD_DEFAULTS[k]))) +
			variables.plan.spec.filter(k, !(k in object.spec)) +
			['terminationGracePeriodSeconds'].filter(k, object.spec.?terminationGracePeriodSeconds.orValue(0) > MAX_GRACE) +
			['nodeSelector'].filter(x, !variables.plan.selector.all(k, object.spec.?nodeSelector.orValue({})[?k].orValue('') == variables.plan.selector[k])) +
			['tolerations'].filter(x, !variables.plan.tolerations.all(t, t in object.spec.?tolerations.orValue([]))) +
			['resources'].filter(x, !(` + amounts("object.spec") + `)) :
			object.spec.filter(k, k in ['hostNetwork', 'hostPID', 'hostIPC', 'ephemeralContainers', 'resourceClaims'] ||
			k == 'serviceAccountName' && object.spec[k].endsWith('-SUFFIX'))).map(k, 'spec.' + k)`},
		{"inSecurity", `(variables.plan.known ? ` + confines("object.spec.?securityContext.orValue({})", "variables.plan.security") +
			` : []).map(k, 'spec.securityContext.' + k)`},
		{"inVolumes", `(variables.plan.volumes.filter(n, !variables.volumes.exists_one(v, v.name == n && ('digest' in variables.plan.volumes[n] ?
			v.?image.?reference.orValue('').endsWith(variables.plan.volumes[n].digest) : v == variables.plan.volumes[n]))) +
			variables.volumes.filter(v, !(v.name in variables.plan.volumes) && !(size(v) == 2 && v.all(k, k == 'name' || k in OWN_VOLUMES))).map(v, v.name)).map(n, 'spec.volumes["' + n + '"]')`},
	}
	sum := []string{"variables.inMetadata", "variables.inAnnotations", "variables.inSpec", "variables.inSecurity", "variables.inVolumes"}
	for _, list := range []string{"initContainers", "containers"} {
		for _, each := range comparisonsOf(list) {
			all = append(all, each)
			sum = append(sum, "variables."+each.name)
		}
	}
	return append(all, comparison{"altered", strings.Join(sum, " + ")})
}

// comparisonsOf returns the comparisons of the planned containers in a list, and of the added containers.
func comparisonsOf(list string) []comparison {
	have, want, path := "object.spec.?"+list+".orValue([])", "variables.plan."+list, "'spec."+list+"[\"' + "
	return []comparison{
		{list + "Order", "['spec." + list + "'].filter(x, " + have + ".filter(c, " + want + ".exists(w, w.name == c.name)).map(c, c.name) != " +
			want + ".map(w, w.name))"},
		{list + "Planned", want + ".map(w, " + have + ".filter(c, c.name == w.name).map(c, (" + differing() + ").map(k, " + path +
			"w.name + '\"].' + k)))" +
			".filter(l, l.exists(m, size(m) > 0)).map(l, l.filter(m, size(m) > 0)[0][0])"},
		{list + "Added", have + ".filter(c, !" + want + ".exists(w, w.name == c.name)).map(c, (" + invading() + ").map(k, " + path +
			"c.name + '\"].' + k))" +
			".filter(m, size(m) > 0).map(m, m[0])"},
	}
}

// differing are the fields in which the container c differs from the planned one w.
func differing() string {
	return `c.filter(k, !(k in APART_OF_CONTAINER || k in w.fields && c[k] == w.fields[k])) + w.fields.filter(k, !(k in c)) +
	['image'].filter(k, !c.image.endsWith(w.image)) + ['imagePullPolicy'].filter(k, c.?imagePullPolicy.orValue('') == 'Never') +
	['env'].filter(k, c.?env.orValue([]).filter(e, e.name != 'PREFLIGHT_DEADLINE') != w.env) +
	['volumeMounts'].filter(k, c.?volumeMounts.orValue([]).filter(m, !(m.name in variables.tokens && m == {'name': m.name, 'readOnly': dyn(true), 'mountPath': dyn('TOKEN_PATH')})) != w.volumeMounts) +
	['resources'].filter(k, !(` + amounts("c") + `)) + (` + confines("c.?securityContext.orValue({})", "w.security") +
		`).map(k, 'securityContext.' + k)`
}

// invading are the fields by which the container c, which admission adds, could change a check (see invades).
func invading() string {
	const security = "c.?securityContext.orValue({})"
	return strings.ReplaceAll(
		`SC.filter(k, !(k == 'capabilities' ? SC[k].?add.orValue([]).all(a, a in OWN_CAPABILITIES) : k == 'privileged' ? SC[k] == false :
	k == 'procMount' ? SC[k] == 'Default' : k == 'seLinuxOptions' ? `, "SC", security) + confined(security+"[k]") + strings.ReplaceAll(` :
	k in ['seccompProfile', 'appArmorProfile'] ? SC[k].type != 'Unconfined' :
	k in ['runAsUser', 'runAsGroup', 'runAsNonRoot', 'readOnlyRootFilesystem', 'allowPrivilegeEscalation'])).map(k, 'securityContext.' + k) +
	['volumeDevices'].filter(k, k in c) + ['resources'].filter(k, !(`, "SC", security) + amounts("c") + `)) +
	['volumeMounts'].filter(k, c.?volumeMounts.orValue([]).exists(m, m.?mountPropagation.orValue('None') != 'None' ||
	m.name in variables.plan.scratch && !m.?readOnly.orValue(false)))`
}

// confines are the fields of a security context that are not the planned ones, and confine no more (see acceptSecurity and
// acceptPodSecurity).
func confines(have, want string) string {
	return "(" + strings.NewReplacer("SC", have, "WANT", want, "CONFINED",
		confined(have+"[k]")).Replace(`SC.filter(k, !(k in WANT ? (k == 'capabilities' ?
	SC[k].?add.orValue([]) == WANT[k].?add.orValue([]) && ('ALL' in SC[k].?drop.orValue([]) || WANT[k].?drop.orValue([]).all(d, d in SC[k].?drop.orValue([]))) :
	SC[k] == WANT[k]) : k == 'capabilities' ? !('add' in SC[k]) : k == 'runAsUser' ? SC[k] != 0 : k == 'seLinuxOptions' ? CONFINED :
	k in ['seccompProfile', 'appArmorProfile'] ? SC[k].type == 'RuntimeDefault' : k in ['privileged', 'allowPrivilegeEscalation'] ? SC[k] == false :
	k in ['runAsNonRoot', 'readOnlyRootFilesystem'] ? SC[k] == true : k == 'procMount' ? SC[k] == 'Default' :
	k in ['runAsGroup', 'fsGroup', 'fsGroupChangePolicy', 'supplementalGroupsPolicy', 'supplementalGroups', 'seLinuxChangePolicy'])) + WANT.filter(k, !(k in SC))`) +
		")"
}

// confined is true for SELinux options that manifestpolicy.Confined allows.
func confined(options string) string {
	return options + ".all(f, f == 'level' || f == 'type' && " + options + "[f] in SELINUX_TYPES)"
}

// amounts is true for resources that acceptResources accepts.
func amounts(of string) string {
	return strings.ReplaceAll("OF.?resources.orValue({}).all(l, l in ['limits', 'requests'] && OF.resources[l].all(r, r in AMOUNTS))", "OF",
		of)
}

// fieldsOf are values as in a manifest.
func fieldsOf[T any](values []T) []any {
	var all []any
	for i := range values {
		if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&values[i]); err == nil { // of an API type there is none
			all = append(all, fields)
		}
	}
	return all
}

// filled is an expression with the lists of this package.
func filled(expression, suffix string) string {
	l := &literals{count: map[string]int{}}
	list := func(texts ...string) string {
		var all []any
		for _, text := range texts {
			all = append(all, text)
		}
		return l.of(all)
	}
	capabilities := []string{}
	for _, capability := range ownCapabilities() {
		capabilities = append(capabilities, string(capability))
	}
	var amounts []string
	for _, name := range ordinaryResources() {
		amounts = append(amounts, string(name))
	}
	return strings.NewReplacer(
		"APART_OF_POD", list(apartOfPod()...), "APART_OF_CONTAINER", list(apartOfContainer()...), "OWN_VOLUMES", list(ownVolumes()...),
		"OWN_CAPABILITIES", list(capabilities...), "AMOUNTS", list(amounts...), "SELINUX_TYPES", list(manifestpolicy.SELinuxTypes()...),
		"NODE_ANNOTATIONS", l.of(nodeAnnotations.String()), "DEFAULT_PROFILES", list(defaultProfiles()...), "TOKEN_PATH", tokenPath,
		"MAX_GRACE", fmt.Sprint(jobplan.MaxGrace), "SUFFIX", suffix, "KNOWN_SOURCES", l.of(fieldsOf(sourcesOfTokenVolume())),
		"POD_DEFAULTS", l.of(map[string]any{
			"automountServiceAccountToken": []any{true}, "dnsPolicy": []any{"ClusterFirst"}, "enableServiceLinks": []any{true},
			"hostUsers":         []any{true, false},
			"setHostnameAsFQDN": []any{false}, "shareProcessNamespace": []any{false},
		}),
	).Replace(expression)
}

// invasion returns the first field by which a container that admission adds could change
// what a check runs or reads; empty if there is none. Such a container has processes,
// files and an account of its own. It shares the network of the pod, on which a check
// trusts nothing but the certificates of the API server, and the volumes that it mounts.
// What it may have is listed, and everything else is refused, including what a later version
// of Kubernetes adds:
//   - volumes of ownVolumes. A claim, a driver or a directory of the node may have the images
//     of all containers of the node;
//   - no devices, which come with files of the node;
//   - no more privileges than the level "baseline" of Kubernetes' Pod Security Standards;
//   - the scratch space of the check only to read: it may have the input of its next
//     container. The other kinds of volumes that a check may have are read-only for every
//     container.
func invasion(path string, want, have corev1.PodSpec) string {
	planned := map[string]bool{}
	var scratch []string
	for _, volume := range want.Volumes {
		planned[volume.Name] = true
		if volume.EmptyDir != nil {
			scratch = append(scratch, volume.Name)
		}
	}
	for _, volume := range have.Volumes {
		if kind := kindOf(volume); !planned[volume.Name] && !slices.Contains(ownVolumes(), kind) {
			return differs(fmt.Sprintf("%s.volumes[%q]", path, volume.Name), kind)
		}
	}
	return cmp.Or(
		invasionBy(path+".initContainers", want.InitContainers, have.InitContainers, scratch),
		invasionBy(path+".containers", want.Containers, have.Containers, scratch),
	)
}

// ownVolumes are the kinds of volumes without files of the node, of another pod or of a
// storage driver: scratch space of the pod, and copies of what the API server has.
func ownVolumes() []string {
	return []string{"configMap", "downwardAPI", "emptyDir", "projected", "secret"}
}

// kindOf is the field of corev1.VolumeSource that is set; several are joined, and none, or one
// that this version does not know, is "unknown".
func kindOf(volume corev1.Volume) string {
	var kinds []string
	source := reflect.ValueOf(volume.VolumeSource)
	for at := range source.NumField() {
		if !source.Field(at).IsZero() {
			name, _, _ := strings.Cut(source.Type().Field(at).Tag.Get("json"), ",")
			kinds = append(kinds, name)
		}
	}
	return cmp.Or(strings.Join(kinds, ", "), "unknown")
}

// invasionBy is invasion by the containers that a list has and the planned one has not.
func invasionBy(path string, want, have []corev1.Container, scratch []string) string {
	for _, container := range have {
		if slices.ContainsFunc(want, func(other corev1.Container) bool { return other.Name == container.Name }) {
			continue
		}
		if found := invades(fmt.Sprintf("%s[%q]", path, container.Name), container, scratch); found != "" {
			return found
		}
	}
	return ""
}

// invades returns the first field by which one added container could.
func invades(path string, container corev1.Container, scratch []string) string {
	if container.SecurityContext != nil {
		if found := privileges(path+".securityContext", *container.SecurityContext); found != "" {
			return found
		}
	}
	if len(container.VolumeDevices) > 0 {
		return differs(path+".volumeDevices", container.VolumeDevices[0].Name)
	}
	resources := container.Resources.DeepCopy()
	acceptResources(resources)
	if !equality.Semantic.DeepEqual(*resources, corev1.ResourceRequirements{}) {
		return differs(path+".resources", resources)
	}
	for _, mount := range container.VolumeMounts {
		if mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone {
			return differs(path+".volumeMounts.mountPropagation", *mount.MountPropagation)
		}
		if !mount.ReadOnly && slices.Contains(scratch, mount.Name) {
			return differs(path+".volumeMounts", mount.Name)
		}
	}
	return ""
}

// privileges returns the first field by which a container with this context could act on the node
// or on the network of the pod. Fields that confine it more, or change its user, have no such effect;
// every other field must have no value.
func privileges(path string, security corev1.SecurityContext) string {
	if capabilities := security.Capabilities; capabilities != nil {
		for _, capability := range capabilities.Add {
			if !slices.Contains(ownCapabilities(), capability) {
				return differs(path+".capabilities.add", capability)
			}
		}
	}
	rest := *security.DeepCopy()
	rest.Capabilities = nil
	rest.RunAsUser, rest.RunAsGroup, rest.RunAsNonRoot, rest.ReadOnlyRootFilesystem = nil, nil, nil, nil
	rest.AllowPrivilegeEscalation = nil // by programs of its own image, within its capabilities
	rest.Privileged = open(nil, rest.Privileged, isFalse)
	rest.ProcMount = open(nil, rest.ProcMount, func(mount corev1.ProcMountType) bool { return mount == corev1.DefaultProcMount })
	rest.SELinuxOptions = open(nil, rest.SELinuxOptions, manifestpolicy.Confined)
	rest.SeccompProfile = open(nil, rest.SeccompProfile,
		func(of corev1.SeccompProfile) bool { return of.Type != corev1.SeccompProfileTypeUnconfined })
	rest.AppArmorProfile = open(nil, rest.AppArmorProfile,
		func(of corev1.AppArmorProfile) bool { return of.Type != corev1.AppArmorProfileTypeUnconfined })
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rest)
	if err != nil {
		return differs(path, err.Error())
	}
	return compareFields(path, map[string]any{}, fields)
}

// ownCapabilities act on the files and processes of a container: the level "baseline" of Kubernetes' Pod Security
// Standards allows them. They exclude NET_ADMIN and NET_RAW, with which the init container of a service mesh redirects
// the connections of the check.
func ownCapabilities() []corev1.Capability {
	return []corev1.Capability{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
		"SETPCAP", "SETUID", "SYS_CHROOT",
	}
}

// literals writes values as literals of the Common Expression Language. Values that occur more than once are variables, so
// that a policy does not grow with what all checks have.
type literals struct {
	count     map[string]int
	names     map[string]string
	variables []admissionregistrationv1.Variable
}

// minShared is the length from which on a literal that occurs again is a variable.
const minShared = 60

// of is the literal of a value as in a manifest.
func (l *literals) of(value any) string {
	switch value := value.(type) {
	case string:
		return strconv.Quote(value)
	case map[string]any:
		return l.shared(value, func(of func(any) string) string {
			fields := make([]string, 0, len(value))
			for _, key := range slices.Sorted(maps.Keys(value)) {
				fields = append(fields, strconv.Quote(key)+": dyn("+of(value[key])+")")
			}
			return "{" + strings.Join(fields, ", ") + "}"
		})
	case []any:
		return l.shared(value, func(of func(any) string) string {
			elements := make([]string, 0, len(value))
			for _, element := range value {
				elements = append(elements, "dyn("+of(element)+")")
			}
			return "[" + strings.Join(elements, ", ") + "]"
		})
	}
	return fmt.Sprint(value) // a number or a boolean
}

// shared is a composite literal, or the variable that has it. What a first pass has counted is known in the second.
func (l *literals) shared(value any, write func(of func(any) string) string) string {
	if l.names == nil {
		text := write(l.of)
		l.count[text]++
		return text
	}
	whole := (&literals{count: map[string]int{}}).of(value)
	if l.count[whole] < 2 || len(whole) < minShared {
		return write(l.of)
	}
	if l.names[whole] == "" {
		text := write(l.of)
		l.names[whole] = fmt.Sprintf("shared%d", len(l.variables))
		l.variables = append(l.variables, admissionregistrationv1.Variable{Name: l.names[whole], Expression: text})
	}
	return "variables." + l.names[whole]
}

// ofAll are the literals of several values, with the variables that they use.
func ofAll(values []map[string]any) ([]string, []admissionregistrationv1.Variable) {
	l := &literals{count: map[string]int{}}
	for _, value := range values {
		l.of(value)
	}
	l.names = map[string]string{}
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, l.of(value))
	}
	return texts, l.variables
}
