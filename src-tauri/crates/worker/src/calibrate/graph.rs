//! Graphs of operations.

use std::marker::PhantomData;

use llama_cpp_sys_2 as sys;

use super::cpu::Cpu;
use super::memory::{Descriptions, Room, Tensor};

/// Something to time: operations of one kind on different data, gone through in turn.
pub trait Work {
    /// How many different ones there are.
    fn different(&self) -> usize;

    /// Tensors that one of them takes in a graph, its inputs and views among them.
    fn tensors(&self) -> usize;

    /// Appends operation number `index` of an endless row.
    fn append(&self, graph: &Graph<'_>, index: usize);

    /// Called before each run, out of the clock's sight.
    fn prepare_run(&self) {}
}

/// A graph of operations of one [`Work`], which it may not outlive.
#[derive(Debug)]
pub struct Graph<'a> {
    descriptions: Descriptions,
    raw: *mut sys::ggml_cgraph,
    operations: usize,
    _work: PhantomData<&'a ()>,
}

impl<'a> Graph<'a> {
    /// Operations from number `first` on.
    pub fn new(work: &'a dyn Work, first: usize, operations: usize) -> Self {
        let tensors = operations * work.tensors();
        // SAFETY: functions without preconditions; the context has room for the graph.
        let (descriptions, raw) = unsafe {
            let bytes = sys::ggml_graph_overhead_custom(tensors, false);
            let descriptions = Descriptions::new(tensors, bytes);
            let raw = sys::ggml_new_graph_custom(descriptions.raw(), tensors, false);
            (descriptions, raw)
        };
        let graph = Self {
            descriptions,
            raw,
            operations,
            _work: PhantomData,
        };
        for index in first..first + operations {
            work.append(&graph, index);
        }
        graph.place_views();
        graph
    }

    /// The engine's graph; valid while `self` lives.
    pub fn raw(&self) -> *mut sys::ggml_cgraph {
        self.raw
    }

    /// Where its tensors are described.
    pub fn context(&self) -> *mut sys::ggml_context {
        self.descriptions.raw()
    }

    /// Operations in it.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// The result of `node` goes to `room`.
    pub fn put(&self, node: Tensor, room: Room) -> Tensor {
        room.hold(node);
        node
    }

    /// Appends `node` and what it is computed from.
    pub fn append(&self, node: Tensor) {
        // SAFETY: a live graph, and tensors that live as long.
        unsafe { sys::ggml_build_forward_expand(self.raw, node) };
    }

    /// Views lie where what they look at lies.
    fn place_views(&self) {
        for node in self.nodes() {
            // SAFETY: nodes of a live graph; what a view looks at has its place by now.
            unsafe {
                if !(*node).view_src.is_null() && (*node).data.is_null() {
                    sys::ggml_backend_view_init(node);
                }
            }
        }
    }

    fn nodes(&self) -> impl Iterator<Item = Tensor> {
        // SAFETY: a live graph and the indices it has.
        (0..unsafe { sys::ggml_graph_n_nodes(self.raw) })
            .map(|index| unsafe { sys::ggml_graph_node(self.raw, index) })
    }

    /// Whether the backend does each operation of it.
    pub fn is_computable(&self, cpu: &Cpu) -> bool {
        // SAFETY: nodes of a live graph.
        self.nodes().all(|node| unsafe { cpu.does(node) })
    }
}

/// What the first operations of a work give: the result of the last.
#[cfg(test)]
pub fn result(cpu: &Cpu, work: &dyn Work, first: usize, operations: usize) -> Vec<f32> {
    let graph = Graph::new(work, first, operations);
    assert!(graph.is_computable(cpu));
    work.prepare_run();
    cpu.compute(&graph).unwrap();
    super::memory::values(graph.nodes().last().unwrap())
}
