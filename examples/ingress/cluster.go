package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	controllerNamespace = "openshift-ingress-operator"
	secretNamespace     = "openshift-ingress"
)

// defaultCertificate is the certificate that an ingress controller serves for routes
// without a certificate.
type defaultCertificate struct {
	controller, secret string
	chain              []*x509.Certificate
}

func (c defaultCertificate) String() string {
	return fmt.Sprintf("Secret %s/%s, the default certificate of IngressController %s", secretNamespace, c.secret, c.controller)
}

// defaultCertificates returns the certificates of all ingress controllers.
func defaultCertificates(ctx context.Context) ([]defaultCertificate, error) {
	// Connects with the same configuration as oc; in a pod, with the configuration of the pod.
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	openshift, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	resource := schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "ingresscontrollers"}
	controllers, err := openshift.Resource(resource).Namespace(controllerNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list ingress controllers: %w", err)
	}
	var all []defaultCertificate
	for _, controller := range controllers.Items {
		c := defaultCertificate{controller: controller.GetName(), secret: secretOf(controller)}
		secret, err := kube.CoreV1().Secrets(secretNamespace).Get(ctx, c.secret, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", c, err)
		}
		if c.chain, err = parseChain(secret.Data[corev1.TLSCertKey]); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", c, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// secretOf returns the name of the administrator's Secret, or of the one that the
// operator generated.
func secretOf(controller unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(controller.Object, "spec", "defaultCertificate", "name")
	return cmp.Or(name, "router-certs-"+controller.GetName())
}
