//! Buildings, pods and segments by name. A file may declare them, and then only those exist; or
//! just use names, and they come to be with their first use.

use rustc_hash::FxHashMap;

use super::decode::Spanned;
use super::doc::{Doc, PlaceDoc};
use super::report::{At, Findings};
use super::resolve::Resolver;
use crate::fault::Fault;
use crate::ids::{BuildingId, PodId, SegmentId};
use crate::naming;

/// One kind of place.
struct Kind<I> {
    what: &'static str,
    /// Name of the one that exists if nobody names any.
    default: &'static str,
    ids: FxHashMap<String, I>,
    declared: bool,
}

impl<I: Copy> Kind<I> {
    fn new(what: &'static str, default: &'static str, declared: bool) -> Self {
        Self {
            what,
            default,
            ids: FxHashMap::default(),
            declared,
        }
    }

    /// The id of a name; `Ok(Err(name))` if it is to be created under that name.
    fn find(
        &self,
        name: Option<&Spanned<String>>,
        at: At,
        findings: &mut Findings,
    ) -> Option<Result<I, String>> {
        if let Some(name) = name {
            if let Some(id) = self.ids.get(&name.value) {
                return Some(Ok(*id));
            }
            if !self.declared {
                return Some(Err(name.value.clone()));
            }
            if findings.full() {
                findings.count();
                return None;
            }
            let help = naming::suggest(&name.value, self.ids.keys().map(String::as_str));
            let message = format!("no {} is called `{}`", self.what, name.value);
            findings.add(name.at, "unknown-place", message, help);
            return None;
        }
        let mut ids = self.ids.values();
        match (ids.next(), ids.next()) {
            (Some(id), None) => Some(Ok(*id)),
            (None, _) => Some(Err(self.default.to_owned())),
            (Some(_), Some(_)) => {
                let what = self.what;
                let message = format!("it is not said in which {what} this is");
                findings.add(
                    at,
                    "missing-field",
                    message,
                    format!("add `{what}: NAME`: there are several"),
                );
                None
            }
        }
    }
}

pub(super) struct Places {
    buildings: Kind<BuildingId>,
    pods: Kind<PodId>,
    segments: Kind<SegmentId>,
    at: FxHashMap<(&'static str, String), At>,
}

impl Places {
    /// Takes over the generated places and adds the declared ones.
    pub(super) fn new(resolver: &mut Resolver<'_>, doc: &Doc) -> Self {
        let closed = doc.clos.is_some();
        let mut places = Self {
            buildings: Kind::new("building", "building1", closed || doc.buildings.is_some()),
            pods: Kind::new("pod", "pod1", closed || doc.pods.is_some()),
            segments: Kind::new("segment", "s1", closed || doc.segments.is_some()),
            at: FxHashMap::default(),
        };
        let topology = resolver.builder.so_far();
        let named = |names: Vec<String>| (0_u32..).zip(names).map(|(id, name)| (name, id));
        let names = topology
            .buildings()
            .iter()
            .map(|place| place.name.clone())
            .collect();
        places.buildings.ids = named(names)
            .map(|(name, id)| (name, BuildingId(id)))
            .collect();
        let names = topology
            .pods()
            .iter()
            .map(|place| place.name.clone())
            .collect();
        places.pods.ids = named(names).map(|(name, id)| (name, PodId(id))).collect();
        let names = topology
            .segments()
            .iter()
            .map(|place| place.name.clone())
            .collect();
        places.segments.ids = named(names)
            .map(|(name, id)| (name, SegmentId(id)))
            .collect();
        places.declare(resolver, doc);
        places
    }

    fn declare(&mut self, resolver: &mut Resolver<'_>, doc: &Doc) {
        for building in doc.buildings.iter().flatten() {
            if self.first("building", building, resolver) {
                match resolver.builder.add_building(building.name.value.as_str()) {
                    Ok(id) => {
                        self.buildings.ids.insert(building.name.value.clone(), id);
                    }
                    Err(fault) => resolver.fault(building.name.at, &fault),
                }
            }
        }
        for pod in doc.pods.iter().flatten() {
            let within = self.building(resolver, pod.within.as_ref(), pod.name.at);
            let first = self.first("pod", pod, resolver);
            let Some(within) = within.filter(|_| first) else {
                continue;
            };
            match resolver.builder.add_pod(pod.name.value.as_str(), within) {
                Ok(id) => {
                    self.pods.ids.insert(pod.name.value.clone(), id);
                }
                Err(fault) => resolver.fault(pod.name.at, &fault),
            }
        }
        for segment in doc.segments.iter().flatten() {
            let within = self.pod(resolver, segment.within.as_ref(), segment.name.at);
            let first = self.first("segment", segment, resolver);
            let Some(within) = within.filter(|_| first) else {
                continue;
            };
            match resolver
                .builder
                .add_segment(segment.name.value.as_str(), within)
            {
                Ok(id) => {
                    self.segments.ids.insert(segment.name.value.clone(), id);
                }
                Err(fault) => resolver.fault(segment.name.at, &fault),
            }
        }
    }

    fn first(&mut self, what: &'static str, place: &PlaceDoc, resolver: &mut Resolver<'_>) -> bool {
        let key = (what, place.name.value.clone());
        if self.at.contains_key(&key) {
            resolver.fault(
                place.name.at,
                &Fault::DuplicateName(place.name.value.clone()),
            );
            return false;
        }
        self.at.insert(key, place.name.at);
        true
    }

    fn building(
        &mut self,
        resolver: &mut Resolver<'_>,
        name: Option<&Spanned<String>>,
        at: At,
    ) -> Option<BuildingId> {
        match self.buildings.find(name, at, resolver.findings)? {
            Ok(id) => Some(id),
            Err(new) => {
                let added = resolver.builder.add_building(new.as_str());
                let id = added
                    .map_err(|fault| resolver.fault(name.map_or(at, |name| name.at), &fault))
                    .ok()?;
                self.buildings.ids.insert(new, id);
                Some(id)
            }
        }
    }

    /// The pod of this name; without a name, the only one there is.
    pub(super) fn pod(
        &mut self,
        resolver: &mut Resolver<'_>,
        name: Option<&Spanned<String>>,
        at: At,
    ) -> Option<PodId> {
        match self.pods.find(name, at, resolver.findings)? {
            Ok(id) => Some(id),
            Err(new) => {
                let building = self.building(resolver, None, at)?;
                let added = resolver.builder.add_pod(new.as_str(), building);
                let id = added
                    .map_err(|fault| resolver.fault(name.map_or(at, |name| name.at), &fault))
                    .ok()?;
                self.pods.ids.insert(new, id);
                Some(id)
            }
        }
    }

    /// The segment of this name; without a name, the only one there is.
    pub(super) fn segment(
        &mut self,
        resolver: &mut Resolver<'_>,
        name: Option<&Spanned<String>>,
        at: At,
    ) -> Option<SegmentId> {
        match self.segments.find(name, at, resolver.findings)? {
            Ok(id) => Some(id),
            Err(new) => {
                let pod = self.pod(resolver, None, at)?;
                let added = resolver.builder.add_segment(new.as_str(), pod);
                let id = added
                    .map_err(|fault| resolver.fault(name.map_or(at, |name| name.at), &fault))
                    .ok()?;
                self.segments.ids.insert(new, id);
                Some(id)
            }
        }
    }
}
