-- The kinds of Kubernetes objects by the names that kubectl takes: without case, plurals, and short names.
local core = require "evrec.core"

local kinds = {}

-- For each API group version: kind, plural, and short names. A star marks a kind whose objects have no namespace.
local built_in = {
	["v1"] = [[
		Binding bindings
		*ComponentStatus componentstatuses cs
		ConfigMap configmaps cm
		Endpoints endpoints ep
		Event events ev
		LimitRange limitranges limits
		*Namespace namespaces ns
		*Node nodes no
		*PersistentVolume persistentvolumes pv
		PersistentVolumeClaim persistentvolumeclaims pvc
		Pod pods po
		PodTemplate podtemplates
		ReplicationController replicationcontrollers rc
		ResourceQuota resourcequotas quota
		Secret secrets
		Service services svc
		ServiceAccount serviceaccounts sa
	]],
	["apps/v1"] = [[
		ControllerRevision controllerrevisions
		DaemonSet daemonsets ds
		Deployment deployments deploy
		ReplicaSet replicasets rs
		StatefulSet statefulsets sts
	]],
	["autoscaling/v2"] = [[
		HorizontalPodAutoscaler horizontalpodautoscalers hpa
	]],
	["batch/v1"] = [[
		CronJob cronjobs cj
		Job jobs
	]],
	["admissionregistration.k8s.io/v1"] = [[
		*MutatingWebhookConfiguration mutatingwebhookconfigurations
		*ValidatingAdmissionPolicy validatingadmissionpolicies
		*ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings
		*ValidatingWebhookConfiguration validatingwebhookconfigurations
	]],
	["apiextensions.k8s.io/v1"] = [[
		*CustomResourceDefinition customresourcedefinitions crd crds
	]],
	["apiregistration.k8s.io/v1"] = [[
		*APIService apiservices
	]],
	["certificates.k8s.io/v1"] = [[
		*CertificateSigningRequest certificatesigningrequests csr
	]],
	["coordination.k8s.io/v1"] = [[
		Lease leases
	]],
	["discovery.k8s.io/v1"] = [[
		EndpointSlice endpointslices
	]],
	["flowcontrol.apiserver.k8s.io/v1"] = [[
		*FlowSchema flowschemas
		*PriorityLevelConfiguration prioritylevelconfigurations
	]],
	["networking.k8s.io/v1"] = [[
		Ingress ingresses ing
		*IngressClass ingressclasses
		*IPAddress ipaddresses ip
		NetworkPolicy networkpolicies netpol
		*ServiceCIDR servicecidrs
	]],
	["node.k8s.io/v1"] = [[
		*RuntimeClass runtimeclasses
	]],
	["policy/v1"] = [[
		PodDisruptionBudget poddisruptionbudgets pdb
	]],
	["rbac.authorization.k8s.io/v1"] = [[
		*ClusterRole clusterroles
		*ClusterRoleBinding clusterrolebindings
		Role roles
		RoleBinding rolebindings
	]],
	["resource.k8s.io/v1"] = [[
		*DeviceClass deviceclasses
		ResourceClaim resourceclaims
		ResourceClaimTemplate resourceclaimtemplates
		*ResourceSlice resourceslices
	]],
	["scheduling.k8s.io/v1"] = [[
		*PriorityClass priorityclasses pc
	]],
	["storage.k8s.io/v1"] = [[
		*CSIDriver csidrivers
		*CSINode csinodes
		CSIStorageCapacity csistoragecapacities
		*StorageClass storageclasses sc
		*VolumeAttachment volumeattachments
		*VolumeAttributesClass volumeattributesclasses vac
	]],
}

-- The group of an apiVersion; "" of core/v1.
local function group_of(api_version)
	return api_version:match "^(.*)/" or ""
end

-- Adds a kind under a name, which a group may have in common with others.
local function add(index, name, kind)
	name = name:lower()
	index[name] = index[name] or {}
	table.insert(index[name], kind)
end

local function index_built_in()
	local index = {}
	for api_version, lines in next, built_in do
		for line in lines:gmatch "[^\n]*%S[^\n]*" do
			local kind
			for star, name in line:gmatch "(%*?)(%S+)" do
				kind = kind or { kind = name, api_version = api_version, namespaced = star == "" }
				add(index, name, kind)
			end
		end
	end
	return index
end

local known = index_built_in()

-- Of a name such as "deployments.apps" or "deployments.v1.apps": the resource, the version and the group.
local function split(name)
	local resource, rest = name:match "^([^.]+)%.?(.*)$"
	if not resource then
		return nil
	end
	local version, group = rest:match "^(v%d+[%w]*)%.?(.*)$"
	if version then
		return resource, version, group
	end
	return resource, nil, rest ~= "" and rest or nil
end

-- The kind in an index. A group also matches longer groups that begin with it, as in kubectl: "ing.networking".
local function find(index, resource, version, group)
	for _, kind in ipairs(index[resource:lower()] or {}) do
		local its = group_of(kind.api_version)
		local same = group == nil or its == group or (group ~= "" and its:sub(1, #group + 1) == group .. ".")
		if same and (version == nil or kind.api_version:match "[^/]+$" == version) then
			return kind
		end
	end
	return nil
end

-- ---- with a server ----

local discovered = setmetatable({}, { __mode = "k" })

local function decoded(source, path)
	local text = core.cluster_get(source, path, 10)
	local ok, document = pcall(require("cjson").decode, text or "")
	return ok and type(document) == "table" and document or {}
end

local function list(value)
	return type(value) == "table" and value or {}
end

-- The kinds of a group version, which is at `path`.
local function discover_version(index, source, path, api_version)
	for _, resource in ipairs(list(decoded(source, path).resources)) do
		if not resource.name:find("/", 1, true) then
			local kind = { kind = resource.kind, api_version = api_version, namespaced = resource.namespaced == true }
			add(index, resource.kind, kind)
			add(index, resource.name, kind)
			if type(resource.singularName) == "string" and resource.singularName ~= "" then
				add(index, resource.singularName, kind)
			end
			for _, name in ipairs(list(resource.shortNames)) do
				add(index, name, kind)
			end
		end
	end
end

-- All kinds of the server: core/v1 first, then the groups in its order, of each the preferred version first.
local function discover(source)
	local index = {}
	for _, version in ipairs(list(decoded(source, "/api").versions)) do
		discover_version(index, source, "/api/" .. version, version)
	end
	for _, group in ipairs(list(decoded(source, "/apis").groups)) do
		local preferred = list(group.preferredVersion).groupVersion
		for first = 1, 2 do
			for _, version in ipairs(list(group.versions)) do
				if (version.groupVersion == preferred) == (first == 1) then
					discover_version(index, source, "/apis/" .. version.groupVersion, version.groupVersion)
				end
			end
		end
	end
	return index
end

--- Finds a kind by a name that kubectl takes: "Pod", "pods", "po", "deployments.apps". A built-in kind needs no
--- request; for another kind a cluster is asked, once, for all its kinds.
---@param name string
---@param cluster? evrec.Source a cluster
---@return { kind: string, api_version: string, namespaced: boolean }? kind
---@return boolean? with_group whether the name says of which group it is
function kinds.find(name, cluster)
	local resource, version, group = split(name)
	if not resource then
		return nil
	end
	local kind = find(known, resource, version, group)
	if not kind and cluster then
		discovered[cluster] = discovered[cluster] or discover(cluster)
		kind = find(discovered[cluster], resource, version, group)
	end
	return kind, group ~= nil or version ~= nil
end

--- Suggests a built-in kind for a word that may be misspelt.
---@param word string
---@return string text such as ": did you mean 'job'?"; "" if no name is near
function kinds.suggest(word)
	return core.suggest(word, known)
end

--- Reads a kind's name without a cluster. An unknown kind is returned as it is written: "Widget", or with its group, as
--- in kubectl, "widgets.example.com" or "widgets.v1.example.com".
---@param name string
---@return { kind: string, api_version: string?, namespaced: boolean, built_in: boolean, has_version: boolean }? kind
---nil: no name of a kind. An unknown kind counts as namespaced; the version of its api_version is empty if it was not
---given: "example.com/".
function kinds.read(name)
	local kind = kinds.find(name)
	if kind then
		return {
			kind = kind.kind, api_version = kind.api_version, namespaced = kind.namespaced, built_in = true, has_version = true,
		}
	end
	local resource, version, group = split(name)
	if not resource then
		return nil
	end
	local api_version = group and group ~= "" and group .. "/" .. (version or "") or version
	return {
		kind = resource, api_version = api_version, namespaced = true, built_in = false, has_version = version ~= nil,
	}
end

return kinds
