package alteration

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
)

// Prevention is the part of an admission policy that denies a pod of the run of a plan which differs from its Job in a field
// that OfPod compares, but for the deadline of the run. It is evaluated after all changes by admission, and before the pod
// exists. Its text grows with what the Jobs do not have in common.
//
// A pod is of the Job that controls it, which its labels and its name must confirm. One of another Job of the run, such as one
// that pulls images, may only not act on the node. An update that changes neither the spec nor the annotations is not judged.
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
	add("owners", "object.metadata.?ownerReferences.orValue([]).filter(o, o.kind == 'Job' && o.apiVersion == 'batch/v1' && o.?controller.orValue(false))")
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
		{"unchanged", "request.operation == 'UPDATE' && object.spec == oldObject.spec && object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})"},
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
		{"inAnnotations", `object.metadata.?annotations.orValue({}).filter(k, k.matches(NODE_ANNOTATIONS) && !(object.metadata.annotations[k] in DEFAULT_PROFILES) &&
			!(k in variables.plan.annotations && variables.plan.annotations[k] == object.metadata.annotations[k])).map(k, 'metadata.annotations.' + k)`},
		{"inSpec", `(variables.plan.known ? object.spec.filter(k, !(k in APART_OF_POD || k == 'affinity' && !(k in variables.plan.spec) ||
			(k in variables.plan.spec ? object.spec[k] == variables.plan.spec[k] : k in POD_DEFAULTS && object.spec[k] in POD_DEFAULTS[k]))) +
			variables.plan.spec.filter(k, !(k in object.spec)) +
			['terminationGracePeriodSeconds'].filter(k, object.spec.?terminationGracePeriodSeconds.orValue(0) > MAX_GRACE) +
			['nodeSelector'].filter(x, !variables.plan.selector.all(k, object.spec.?nodeSelector.orValue({})[?k].orValue('') == variables.plan.selector[k])) +
			['tolerations'].filter(x, !variables.plan.tolerations.all(t, t in object.spec.?tolerations.orValue([]))) +
			['resources'].filter(x, !(` + amounts("object.spec") + `)) :
			object.spec.filter(k, k in ['hostNetwork', 'hostPID', 'hostIPC', 'ephemeralContainers', 'resourceClaims'] ||
			k == 'serviceAccountName' && object.spec[k].endsWith('-SUFFIX'))).map(k, 'spec.' + k)`},
		{"inSecurity", `(variables.plan.known ? ` + confines("object.spec.?securityContext.orValue({})", "variables.plan.security") + ` : []).map(k, 'spec.securityContext.' + k)`},
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

// comparisonsOf are those of the planned containers of a list, and of the added ones.
func comparisonsOf(list string) []comparison {
	have, want, path := "object.spec.?"+list+".orValue([])", "variables.plan."+list, "'spec."+list+"[\"' + "
	return []comparison{
		{list + "Order", "['spec." + list + "'].filter(x, " + have + ".filter(c, " + want + ".exists(w, w.name == c.name)).map(c, c.name) != " + want + ".map(w, w.name))"},
		{list + "Planned", want + ".map(w, " + have + ".filter(c, c.name == w.name).map(c, (" + differing() + ").map(k, " + path + "w.name + '\"].' + k)))" +
			".filter(l, l.exists(m, size(m) > 0)).map(l, l.filter(m, size(m) > 0)[0][0])"},
		{list + "Added", have + ".filter(c, !" + want + ".exists(w, w.name == c.name)).map(c, (" + invading() + ").map(k, " + path + "c.name + '\"].' + k))" +
			".filter(m, size(m) > 0).map(m, m[0])"},
	}
}

// differing are the fields in which the container c differs from the planned one w.
func differing() string {
	return `c.filter(k, !(k in APART_OF_CONTAINER || k in w.fields && c[k] == w.fields[k])) + w.fields.filter(k, !(k in c)) +
	['image'].filter(k, !c.image.endsWith(w.image)) + ['imagePullPolicy'].filter(k, c.?imagePullPolicy.orValue('') == 'Never') +
	['env'].filter(k, c.?env.orValue([]).filter(e, e.name != 'PREFLIGHT_DEADLINE') != w.env) +
	['volumeMounts'].filter(k, c.?volumeMounts.orValue([]).filter(m, !(m.name in variables.tokens && m == {'name': m.name, 'readOnly': dyn(true), 'mountPath': dyn('TOKEN_PATH')})) != w.volumeMounts) +
	['resources'].filter(k, !(` + amounts("c") + `)) + (` + confines("c.?securityContext.orValue({})", "w.security") + `).map(k, 'securityContext.' + k)`
}

// invading are the fields by which the container c, which admission adds, could change a check (see invades).
func invading() string {
	const security = "c.?securityContext.orValue({})"
	return strings.ReplaceAll(`SC.filter(k, !(k == 'capabilities' ? SC[k].?add.orValue([]).all(a, a in OWN_CAPABILITIES) : k == 'privileged' ? SC[k] == false :
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
	return "(" + strings.NewReplacer("SC", have, "WANT", want, "CONFINED", confined(have+"[k]")).Replace(`SC.filter(k, !(k in WANT ? (k == 'capabilities' ?
	SC[k].?add.orValue([]) == WANT[k].?add.orValue([]) && ('ALL' in SC[k].?drop.orValue([]) || WANT[k].?drop.orValue([]).all(d, d in SC[k].?drop.orValue([]))) :
	SC[k] == WANT[k]) : k == 'capabilities' ? !('add' in SC[k]) : k == 'runAsUser' ? SC[k] != 0 : k == 'seLinuxOptions' ? CONFINED :
	k in ['seccompProfile', 'appArmorProfile'] ? SC[k].type == 'RuntimeDefault' : k in ['privileged', 'allowPrivilegeEscalation'] ? SC[k] == false :
	k in ['runAsNonRoot', 'readOnlyRootFilesystem'] ? SC[k] == true : k == 'procMount' ? SC[k] == 'Default' :
	k in ['runAsGroup', 'fsGroup', 'fsGroupChangePolicy', 'supplementalGroupsPolicy', 'supplementalGroups', 'seLinuxChangePolicy'])) + WANT.filter(k, !(k in SC))`) + ")"
}

// confined is true for SELinux options that manifestpolicy.Confined allows.
func confined(options string) string {
	return options + ".all(f, f == 'level' || f == 'type' && " + options + "[f] in SELINUX_TYPES)"
}

// amounts is true for resources that acceptResources accepts.
func amounts(of string) string {
	return strings.ReplaceAll("OF.?resources.orValue({}).all(l, l in ['limits', 'requests'] && OF.resources[l].all(r, r in AMOUNTS))", "OF", of)
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
			"automountServiceAccountToken": []any{true}, "dnsPolicy": []any{"ClusterFirst"}, "enableServiceLinks": []any{true}, "hostUsers": []any{true, false},
			"setHostnameAsFQDN": []any{false}, "shareProcessNamespace": []any{false},
		}),
	).Replace(expression)
}
