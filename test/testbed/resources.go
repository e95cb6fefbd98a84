package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// establishTimeout bounds the wait for the API server to serve new CRDs.
const establishTimeout = 2 * time.Minute

func (b *Bed) installResources(ctx context.Context) error {
	if err := b.installCRDs(ctx); err != nil {
		return fmt.Errorf("installing the CRDs: %w", err)
	}
	if err := b.grantManager(ctx); err != nil {
		return err
	}
	return b.bindClusterRole(ctx, evidenceUser, EvidenceRole)
}

func (b *Bed) installCRDs(ctx context.Context) error {
	var names []string
	for _, dir := range append(b.paths.crdDirs(), b.options.CRDDirs...) {
		objects, err := readManifests(dir)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.GetKind() != "CustomResourceDefinition" {
				continue
			}
			if err := b.create(ctx, object); err != nil {
				return err
			}
			names = append(names, object.GetName())
		}
	}
	var waiting []string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, establishTimeout, true, func(ctx context.Context) (bool, error) {
		var crds apiextensionsv1.CustomResourceDefinitionList
		if err := b.Client.List(ctx, &crds); err != nil {
			return false, err
		}
		waiting = notEstablished(names, crds.Items)
		return len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %v to be established: %w", waiting, err)
	}
	return nil
}

func notEstablished(names []string, crds []apiextensionsv1.CustomResourceDefinition) []string {
	established := map[string]bool{}
	for _, crd := range crds {
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				established[crd.Name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return established[name] })
}

// CreateNamespace makes a namespace, unless it is there already.
func (b *Bed) CreateNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := b.Client.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// grantManager gives the manager's user exactly the rights that the project's
// manifests give its service account, so that a missing right shows here first.
func (b *Bed) grantManager(ctx context.Context) error {
	objects, err := readManifests(b.options.ManagerRBAC)
	if errors.Is(err, os.ErrNotExist) {
		return b.bindClusterRole(ctx, ManagerUser, "cluster-admin")
	}
	if err != nil {
		return fmt.Errorf("reading the manager's roles: %w", err)
	}
	bound := map[string]bool{}
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRoleBinding", "RoleBinding":
			role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			bound[role] = true
			object.Object["subjects"] = []any{subject(ManagerUser)}
		case "ClusterRole", "Role":
		default:
			continue
		}
		if err := b.createRBAC(ctx, object); err != nil {
			return err
		}
	}
	// The generated role comes without a binding; it has the manager's name.
	isGenerated := func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ClusterRole" && o.GetName() == ManagerUser
	}
	if slices.ContainsFunc(objects, isGenerated) && !bound[ManagerUser] {
		return b.bindClusterRole(ctx, ManagerUser, ManagerUser)
	}
	return nil
}

func (b *Bed) createRBAC(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetKind() == "Role" || object.GetKind() == "RoleBinding" {
		if object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		if err := b.CreateNamespace(ctx, object.GetNamespace()); err != nil {
			return err
		}
	}
	if err := b.Client.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (b *Bed) bindClusterRole(ctx context.Context, user, role string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "testbed-" + user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := b.Client.Create(ctx, binding); err != nil {
		return fmt.Errorf("giving %s the role %s: %w", user, role, err)
	}
	return nil
}

func subject(user string) map[string]any {
	return map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}
}

// readManifests reads every object in the YAML files of a directory.
func readManifests(dir string) ([]*unstructured.Unstructured, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		found, err := readManifest(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func readManifest(file string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(f, 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if object.GetKind() != "" {
			objects = append(objects, object)
		}
	}
}

// create makes an object and says which one failed.
func (b *Bed) create(ctx context.Context, object client.Object) error {
	if err := b.Client.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
