"""Keys read and assigned, as MXNet 1.9.1 does it: the table, and the script that asks.

With MXNet's Python:  make_indexing.py        writes indexing.json
Each case is text for both libraries; its first name is an array of `arrays`. Assignments at indices in arrays that are
negative or out of range are left out: MXNet writes outside of the array.
"""
import warnings
from pathlib import Path

import numpy as np

ANSWERS = Path(__file__).with_name("indexing.json")
MARK = 77  # is written through what was read, to see whether the array that it came from changes


def arrays(mx):
    """The names that cases use: fresh arrays."""
    nd, count = mx.nd, np.arange(48, dtype="float32")
    A = count[:24].reshape(2, 3, 4)
    return {"mx": mx, "nd": nd, "np": np, "A": A, "a": nd.array(A), "p": nd.array(count.reshape(2, 3, 2, 4)),
            "o": nd.array(count[:8].reshape(2, 1, 4)), "v": nd.array([1, 2, 3]), "z": nd.array([]),
            "u": nd.array([1, 2, 3], dtype="uint8"), "i": nd.array([1, -2, 3], dtype="int32"),
            "b": nd.array([1, 0, 1], dtype="bool"), "h": nd.array([0.5, 1.5, -2], dtype="float16"),
            "l": nd.array([5, 6, 2**53 + 1], dtype="int64"), "d": nd.array([0.1, 0.2, 0.3], dtype="float64")}


READ = """
a[0] ;  a[-1] ;  a[2] ;  a[-3] ;  a[np.int64(1)] ;  a[np.uint8(1)] ;  a[np.array(1)] ;  a[True] ;  a[False]
a[np.bool_(True)] ;  a[1.0] ;  a[np.float32(1)] ;  a['x'] ;  a[None] ;  a[None,None] ;  a[...] ;  a[:] ;  a[()]
a[0,1,2] ;  a[0,1,2,None] ;  a[None,0,1,2] ;  a[0,None,1] ;  a[0,1,2,3] ;  a[...,...] ;  a[0,...,1]
a[...,0,1,2] ;  a[0:1] ;  a[0:0] ;  a[2:1] ;  a[5:9] ;  a[-9:1] ;  a[::2] ;  a[::-1] ;  a[:,::-1] ;  a[1:0:-1]
a[:0:-1] ;  a[::0] ;  a[0:1,1:2] ;  a[0:1,1:3] ;  a[0,1:3] ;  a[0,1:3,0:4] ;  a[0,1:3,0:3] ;  a[0,1,1:3]
a[0,:,1:3] ;  a[:,1:3] ;  a[:,:,1:3] ;  a[:,0:3] ;  a[0,1:1] ;  a[:, 1:1] ;  a[0,1:2,1:3] ;  a[0,::2]
a[0,0:1:2] ;  a[0,0:2:2] ;  a[[0]] ;  a[[1,0]] ;  a[[0,2]] ;  a[[10]] ;  a[[-1]] ;  a[[-3]] ;  a[[]] ;  a[[0,1],]
a[[0],[1]] ;  a[[0,1],[1,2]] ;  a[[0,1],[1,2],[0,3]] ;  a[[[0,1],[1,0]]] ;  a[[0.0,1.0]] ;  a[[0.7,1.0]]
a[(0,1)] ;  a[(0,1),] ;  a[((0,1),(1,2))] ;  a[nd.array([0,1])] ;  a[nd.array([1.9])]
a[nd.array([1],dtype='int32')] ;  a[nd.array([1],dtype='int8')] ;  a[nd.array([1],dtype='uint8')]
a[nd.array([1],dtype='int64')] ;  a[nd.array([1],dtype='float16')] ;  a[nd.array([1],dtype='float64')]
a[nd.array([2])] ;  a[nd.array([-1])] ;  a[nd.array([-3])] ;  a[nd.array([0,1]),1] ;  a[nd.array([[0,1],[1,1]])]
a[nd.array([0,1]),nd.array([1,2])] ;  a[nd.array([0,1]),nd.array([[1],[2]])]
a[nd.array([0,1]),nd.array([0,1,2])] ;  a[np.array([0,1])] ;  a[np.array([0.,1.])]
a[np.array([0,1]),np.array([[1],[2]])] ;  a[:,[0,1]] ;  a[:,[0,1],0] ;  a[0,[0,1]] ;  a[0,[0,1],1:3]
a[0,:,[0,1]] ;  a[[0,1],:,0] ;  a[[0,1],:,[0,1]] ;  a[[0,1],None] ;  a[None,[0,1]] ;  a[[0,1],None,[0,1]]
a[[0,1],...,0] ;  a[...,[0,1]] ;  a[...,[3,-1]] ;  a[...,[4]] ;  a[::-1,[0,1]] ;  a[1:2,[0,1]] ;  a[1:1,[0,1]]
a[:,1:3,[0,1]] ;  a[[True,False]] ;  a[np.array([True,False])] ;  a[nd.array([True,False],dtype='bool')]
a[np.array([True,False,True])] ;  a[:,np.array([True,False,True])] ;  a[np.array(A>5)] ;  a[a>5]
a[np.array([[True,False,True],[False,True,True]])] ;  a[0,np.array([True,False,True])]
a[np.array([False,False])] ;  a[range(2)] ;  a[range(0,2),1] ;  a[[0,1],(0,1)] ;  a[0][1] ;  a[0][1][2]
a[0:1][0][1:3][0] ;  a[:,1][0] ;  a.reshape((3,8))[1:2] ;  a[slice(nd.array([0]),2)]
a[np.int32(0):np.int64(1)] ;  a[0.0:1.0] ;  a[None:None:None] ;  a[0:2:-1] ;  a[-1:-3:-1] ;  a[5::-1]
a[:, ::2] ;  a[None,0:1] ;  a[0:1,None] ;  a[0,None] ;  a[None,:,None,0] ;  a[:,0,None] ;  a[1,1,1:1]
a[set([0])] ;  a[{0:1}] ;  a[b'1'] ;  a[object()] ;  a[nd.array([0,1]).reshape((1,2)),[[1],[2]]] ;  z[0] ;  z[:]
z[[0]] ;  v[-1] ;  v[[1]] ;  v[1:2] ;  v[3:] ;  v[None,1] ;  v[1,None] ;  v[2] ;  v[3] ;  v[[3]]
v[nd.array([3])] ;  v[nd.array([3]).astype('int32')] ;  v[np.array([3])] ;  v[::-1] ;  v[nd.array([0,1,1])]
v[nd.array([1])>0] ;  nd.array([1,2,3],dtype='int32')[[1,2]] ;  nd.array([1,2,3],dtype='bool')[[1,2]]
nd.array([1,2,3],dtype='float16')[::2] ;  a[nd.array(1)] ;  a[:,1:1] ;  a[0,[5]] ;  a[np.uint8(1),0]
a[np.int32(1),0] ;  a[np.int16(1),0] ;  a[np.int16(1)] ;  a[True,0] ;  a[0,True] ;  a['x',0] ;  a[0,'x']
a[0,1.5] ;  a[[0],'x'] ;  a[0,5] ;  a[5,0] ;  a[0,0,-5] ;  a[...,4] ;  a[[0],5] ;  a[[0,1],0:1,0:1]
a[0:1,[0,1],None] ;  a[0:1,None,[0,1]] ;  a[None,[0,1],None,[0,1]] ;  a[[0,1],0,None] ;  a[0,None,[0,1]]
a[[0,1],None,:,[0,1]] ;  a[[0,1],:,None,[0,1]] ;  a[[0],[0],[0],[0]] ;  a[[0],[0],[0],0] ;  a[[0],...,...]
a[[[0,1],[1]]] ;  a[['a']] ;  a[[None]] ;  a[[1,None]] ;  a[[0,slice(None)]] ;  a[[[0,1],[1,2]]] ;  a[[0],1:1]
a[[0],2:0:-1] ;  a[[0],::0] ;  a[[0],:,0.5] ;  a[nd.array([0,1]),:,nd.array([[0],[1]],dtype='int32')]
a[nd.array([0,1]),[1,2],np.array([3,0])] ;  a[0,1,[2,3]] ;  a[0,1,nd.array([2])] ;  a[[0,1],1:3,1]
a[1:2,[0,1],[0,1]] ;  a[...,0,[0,1]] ;  a[[0],[1],[2]] ;  a[:,nd.array([[0,1],[1,2]])]
a[np.array([], dtype='int64')] ;  a[nd.array([])] ;  v[[0,2]] ;  v[nd.array([0.5])] ;  v[[[0]]]
v[np.array([[0,1]])] ;  a[np.array([1e9])] ;  a[np.array([np.nan])] ;  a[np.array([-0.5])] ;  a[np.array([-1.5])]
a[[2**31]] ;  a[2**40] ;  a[-2**40:2**40] ;  a[[1,1,1]][0] ;  a[False,0] ;  a[0,1,True] ;  a[True,True]
a[0,1,2,True] ;  a[True,[0]] ;  a[[0],True] ;  v[None,None,1] ;  v[1,None,None] ;  v[None,1,None]
a[0,1,2][None] ;  a[1:1:2] ;  a[1:1,0] ;  a[1:1,:] ;  a[:,2:1] ;  a[2:1,0] ;  a[2:1:1] ;  a[2:1:2] ;  a[0:2:-2]
a[0,0:2:-1] ;  a[:,0:2:-1] ;  a[0:0,0:0] ;  a[0:0,...] ;  a[0:0,None] ;  a[None,0:0] ;  a[...,0:0]
a[0,1:2,0:0] ;  a[0,0,0:0] ;  v[0:0] ;  v[2:1] ;  v[0:2:-1] ;  v[0:0,] ;  v[0:0,None] ;  a[0:0][0:0] ;  a[0:0][0]
a[0:0][:,0] ;  a[0:0][:,0:1] ;  a[0:0][[0]] ;  a[0:0][None] ;  a[0:0][...] ;  a[0:0][:] ;  a[0:0][::2] ;  o[:,0]
o[:,0:1] ;  o[0,0] ;  o[...,0:4] ;  o[:,:,::1] ;  o[:,::-1] ;  o[:,0:1:5] ;  o[0:2,0:1] ;  a[[[0,1],[1,0]],None]
a[[[0,1],[1,0]],0,None] ;  a[[0,1],:,None] ;  a[[0,1],None,:,None] ;  a[[0,1],None,None]
a[0:1,[0,1],None,None] ;  a[0:1,[[0,1]],None] ;  a[0:1,[[0,1]],:,None] ;  a[[[0,1]],:,:,None]
a[[0,1],:,:,None] ;  a[None,[0,1],None] ;  a[None,[[0,1]],None] ;  a[:,None,[[0,1]],None]
a[:,[0,1],[0,1],None] ;  a[:,None,[0,1],[0,1],None] ;  a[:,:,[[[0,1]]],None] ;  a[[[0,1]],None,[[0,1]]]
a[[[0,1]],None,[[0,1]],None] ;  a[[[0,1]],[[0,1]],[[0,1]],None] ;  a[[[0,1]],[[0,1]],[[0,1]],None,None]
a[None,[[0,1]],[[0,1]],[[0,1]],None] ;  v[[0,1],None] ;  v[None,[0,1]] ;  v[[[0,1]],None] ;  a[:,[0,1],None,0]
a[:,0,None,[0,1]] ;  a[:,[[0,1]],None,0:2] ;  a[0,[0,1],None,0:2] ;  a[...,[0,1],None] ;  a[:,:,[0,1],None]
a[0,:,[0,1],None] ;  a[0,:,None,[[0,1]]] ;  a[0,nd.array([True,False,True],dtype='bool')]
a[nd.array([True,False],dtype='bool'),0] ;  a[nd.array([True,False],dtype='bool'),] ;  a[1:1,0:2]
a[1:1,0:4,0:2] ;  a[1:1,::2] ;  a[1:1,0,0] ;  a[1:1,0:1,1] ;  l[[0]] ;  l[0] ;  l[::2] ;  z[None] ;  z[...]
z[()] ;  z[::2] ;  z[::-1] ;  v[-4] ;  v[[]] ;  a[[[0,1]],:,None] ;  a[[[0,1]],:] ;  a[[[0,1]],:,:]
a[[0,1],:,:] ;  a[[[0],[1]],1:3,:,None] ;  a[[[0],[1]],1:3,None] ;  a[:,[[0],[1]],:,None]
a[:,[[0,2]],1:3,None] ;  v[0] ;  i[1] ;  i[::2] ;  i[[1,2]] ;  u[nd.array([1,2])] ;  b[0:2] ;  h[-1] ;  h[::-1]
l[1:] ;  d[[0,0,1]] ;  d[1:2] ;  o[0,0,1:3] ;  o[:,0,1:3] ;  o[:,0,::-1] ;  o[[0,1],0,1:3] ;  o[0,[0],[[1],[2]]]
p[0,0,0,0] ;  p[1] ;  p[1,2] ;  p[1,2,0:1] ;  p[1,1:,0] ;  p[:,0,0] ;  p[:,0:1,1:2,0]
p[...,1,0] ;  p[1,...,1] ;  p[-1,-2:,:,::2] ;  p[1:,2:,1:,2:] ;  p[0,1,:,0:2] ;  p[0:1,1:2,0:1,0:2]
p[0:1,1:2,0:2,0:4] ;  p[[0,1],:,1,:] ;  p[:,[0,2],:,[1,3]] ;  p[:,[0,2],[0,1],:] ;  p[:,[0,2],[0,1],::-2]
p[0,:,[0,1]] ;  p[0,:,[0,1],None,:] ;  p[...,[0,3],None] ;  p[[[0,1],[1,0]],:,[[0,1],[1,0]]]
p[nd.array([1,0]),...,nd.array([3,2])] ;  p[1][2][0][3] ;  p[1][0:2][1][:,1:3] ;  p[1,:,1][1:3][0]
p[0:2,0,0,0] ;  p[0][0,:,1] ;  p.reshape((4,12))[1:3,::4] ;  p.reshape((-1,4))[3][1:]
"""
ASSIGN = """
a[0] = 2.5 ;  a[-1] = [1,2,3,4] ;  a[5] = 1 ;  a[0] = [[1],[2],[3]] ;  a[0] = np.ones((3,4))
a[0] = np.ones((1,3,4)) ;  a[0] = np.ones((2,3,4)) ;  a[0] = np.ones((1,1,3,4)) ;  a[0] = nd.ones((3,4))
a[0] = nd.ones((4,)) ;  a[0] = nd.ones((1,)) ;  a[0] = nd.ones((3,)) ;  a[0] = nd.ones((1,3,4))
a[0] = nd.ones((1,1,3,4)) ;  a[0] = nd.ones((3,4),dtype='int32') ;  a[0] = nd.ones((3,4),dtype='float64')
a[0] = nd.array(5) ;  a[0] = np.array(5) ;  a[0] = True ;  a[0] = None ;  a[0] = 'x' ;  a[0] = '1'
a[0] = np.float32(3) ;  a[0] = np.int64(3) ;  a[0] = np.bool_(1) ;  a[0] = 1+2j ;  a[0] = (1,2,3,4)
a[0] = range(4) ;  a[0] = [1,2] ;  a[0] = [] ;  a[0] = np.ones((0,)) ;  a[0] = float('nan') ;  a[:] = 1
a[:] = np.ones((3,4)) ;  a[:] = np.ones((2,3,4),'int32') ;  a[:] = np.ones((1,2,3,4))
a[:] = nd.ones((1,2,3,4)) ;  a[:] = np.ones((24,)) ;  a[:] = np.ones((6,4)) ;  a[:] = nd.ones((3,4))
a[:] = nd.ones((6,4)) ;  a[:] = nd.ones((24,)) ;  a[:] = np.ones((3,)) ;  a[:] = nd.ones((2,3,4),dtype='float16')
a[:] = [1,2,3,4] ;  a[:] = [[1],[2],[3]] ;  a[...] = 3 ;  a[()] = 3 ;  a[None] = 3
a[None] = np.ones((1,2,3,4)) ;  a[None] = np.ones((2,3,4)) ;  a[...] = np.ones((1,1,2,3,4)) ;  a[0,1] = 5
a[0,1,2] = 5 ;  a[0,1,2] = [5] ;  a[0,1,2] = [[5]] ;  a[0,1,2] = nd.array([5]) ;  a[0,1,2] = nd.array(5)
a[0,1,2] = [5,6] ;  a[0,1,2] = np.array(5) ;  a[0,1,5] = 5 ;  a[0,:,1] = [7,8,9] ;  a[0,:,1:3] = [[7],[8],[9]]
a[:,::-1] = np.arange(12).reshape(3,4) ;  a[::2] = 1 ;  a[0:1] = nd.ones((3,4)) ;  a[0:1] = nd.ones((2,3,4))
a[0:0] = 1 ;  a[2:1] = 1 ;  a[0,1:1] = 1 ;  a[1:1] = nd.ones((3,4)) ;  a[1:1] = np.ones((0,3,4)) ;  a[0:2:-1] = 1
a[[0]] = 1 ;  a[[0,1]] = np.ones((3,4)) ;  a[[0,1]] = nd.ones((3,4)) ;  a[[1,0]] = np.arange(24).reshape(2,3,4)
a[[1,1]] = np.arange(24).reshape(2,3,4) ;  a[[0,1],[1,2]] = [[1,2,3,4],[5,6,7,8]]
a[[0,1],[1,2]] = nd.array([1,2,3,4]) ;  a[[0,1],[1,2],[0,3]] = [1,2] ;  a[[0,1],[1,2],[0,3]] = 5
a[:,[0,2]] = 5 ;  a[:,[0,2]] = [[1],[2]] ;  a[:,[0,2]] = nd.array([[1],[2]]) ;  a[0,[0,2]] = [1,2,3,4]
a[[0,1],:,0] = [1,2,3] ;  a[[0,1],:,[0,1]] = [1,2,3] ;  a[0,:,[0,1]] = [1,2,3] ;  a[[0,1],None] = 3
a[[0,1]] = np.ones((1,2,3,4)) ;  a[[0,1]] = nd.ones((1,2,3,4)) ;  a[[0]] = nd.ones((2,3,4))
a[[0]] = np.ones((5,)) ;  a[[]] = 1 ;  a[1:1,[0]] = 1 ;  a[[0,1]] = None ;  a[[0,1]] = 'x'
a[[0,1]] = nd.ones((3,4),dtype='int32') ;  a[nd.array([0,1])] = 1 ;  a[nd.array([1],dtype='int32')] = 1
a[nd.array([1],dtype='bool')] = 1 ;  a[np.array([True,False])] = 1 ;  a[a>5] = 1
a[nd.array([0])] = nd.array(5) ;  a[1.5] = 1 ;  a['x'] = 1 ;  a[0,'x'] = 1 ;  a[np.uint8(1)] = 1 ;  a[True] = 1
a[np.array(1)] = 1 ;  a[0,1,2,3] = 1 ;  a[...,...] = 1 ;  a[::0] = 1 ;  a[0][1][2] = 9
a[0][1:3][0] = [1,2,3,4] ;  a[:,1][0] = 9 ;  a[[0]][0] = 9 ;  a[0:1][0][1:3][...,1] = 9
a.reshape((4,6))[1:3][0] = 9 ;  a[0,None,1] = 5 ;  a[0,None,1] = np.ones((1,4))
a[None,0,:,None] = np.ones((1,3,1,4)) ;  a[None,0,:,None] = np.ones((3,1,4))
a[None,0,:,None] = nd.ones((1,3,1,4)) ;  a[None,0,:,None] = nd.ones((3,4)) ;  a[0] = [[1,2],[3]]
v[0] = nd.array([5]) ;  v[0] = [5] ;  v[0] = 5 ;  v[0] = [[5]] ;  v[:] = nd.array([5]) ;  v[:] = 5
v[::2] = [5,6] ;  v[[0,2]] = [5,6] ;  v[1:2] = 8 ;  v[-1] = 8 ;  a[0] = nd.ones((2,3,4))[0]
a[0] = mx.nd.array([[0,1],[1,2],[3,3]]) ;  v[0] = [1,2] ;  v[0:2] = nd.array([1.5,2.5],dtype='float64')
v[0:2] = nd.array([1,0],dtype='bool') ;  v[None] = [[1,2,3]] ;  v[None,1] = 5 ;  v[...] = nd.ones((1,3))
v[:] = v[::-1] ;  v[[0,1]] = v[1:] ;  o[:,0] = [[1],[2]] ;  o[:,0] = nd.array([[1],[2]]) ;  o[:,:,1:2] = [5]
o[:,0,::-2] = [5,6] ;  a[0,1:2,::2] = [[1,2]] ;  a[::-1,::-1,::-1] = A ;  a[:,1] = np.arange(8).reshape(2,4)
a[:,1] = np.arange(8).reshape(2,1,4) ;  a[:,1] = nd.arange(8).reshape((2,1,4))
a[:,1] = nd.arange(8).reshape((1,2,4)) ;  a[:,[0,1],0] = np.arange(4).reshape(2,2)
a[:,[0,1],0] = np.arange(4).reshape(1,2,2) ;  a[:,[0,1],0] = np.arange(6).reshape(2,3)
a[:,[0,1],0] = nd.arange(6).reshape((2,3)) ;  a[[0,1],:,[0,1]] = np.arange(6).reshape(2,3)
a[[0,1],None,:,[0,1]] = np.arange(6).reshape(2,1,3) ;  a[[0,1],None,:,[0,1]] = np.arange(6).reshape(2,3)
a[None,[0,1]] = np.arange(24).reshape(1,2,3,4) ;  a[None,[0,1]] = np.arange(24).reshape(2,3,4)
a[0,0,[0,1]] = nd.array([7,8],dtype='int32') ;  a[[0]] = [[1,2,3]] ;  a[0] = {} ;  a[0] = object()
a[0] = np.array(['a']) ;  a[0] = [None]*4 ;  a[:] = 'x' ;  a[:] = None ;  a[:] = '2' ;  a[:] = [1,2] ;  a[:] = []
a[[0]] = '3' ;  a[[0]] = [] ;  a[:] = a ;  a[0] = a[1] ;  a[0] = a ;  a[0:1] = a[1] ;  a[:1] = np.float64(3)
a[nd.array([[0,1],[1,0]])] = np.ones((2,2,3,4)) ;  a[range(1)] = 3 ;  a[((0,1),(1,2))] = 3 ;  a[(0,1),] = 3
a[nd.array([True,False],dtype='bool')] = 7 ;  a[nd.array([True,False],dtype='bool')] = nd.ones((3,4))
a[nd.array([True,False],dtype='bool')] = np.ones((1,3,4))
a[nd.array([[True,False,True],[False,True,True]],dtype='bool')] = 7
a[nd.array([[True,False,True],[False,True,True]],dtype='bool')] = np.arange(4)
a[nd.array([[True,False,True],[False,True,True]],dtype='bool')] = np.arange(16).reshape(4,4)
a[nd.array(A>5,dtype='bool')] = 7 ;  a[nd.array(A>5,dtype='bool')] = np.arange(18)
a[nd.array(A>5,dtype='bool')] = nd.arange(18) ;  a[nd.array(A>50,dtype='bool')] = 7
a[(nd.array([True,False],dtype='bool'),)] = 7 ;  a[0,nd.array([True,False,True],dtype='bool')] = 7
a[False] = 1 ;  a[True,0] = 1 ;  a[0,True] = 1 ;  a[True,[0]] = 1 ;  a[1:1] = [1,2,3,4] ;  a[1:1] = np.ones((1,))
a[1:1] = nd.ones((1,)) ;  a[1:1] = nd.array([]) ;  a[1:1,0:2] = 1 ;  a[2:1,0] = 1 ;  a[2:1] = np.ones((0,3,4))
a[None,0,:,None] = np.ones((1,1,4)) ;  a[None,0,:,None] = np.ones((1,3,1))
a[None,0,:,None] = np.ones((1,1,3,1,4)) ;  a[None,0,:,None] = np.ones((3,1)) ;  a[None,0,:,None] = np.ones((1,4))
a[None,0,:,None] = np.ones((1,4,4)) ;  a[None,[0,1]] = np.ones((3,2,3,4))
a[[0,1],None] = np.arange(24).reshape(1,2,3,4) ;  a[[0,1],None] = np.arange(24).reshape(2,1,3,4)
a[[0,1],None] = np.arange(12).reshape(3,4) ;  a[:,None,1] = np.arange(8).reshape(2,1,4)
a[:,None,1] = np.arange(4).reshape(1,1,4) ;  a[:,None,1] = np.arange(2).reshape(2,1,1)
a[:,None,1] = np.arange(2).reshape(2,1) ;  u[:] = 300 ;  u[:] = -1 ;  u[0] = 2.7 ;  u[:] = [300] ;  u[:] = [-1]
u[:] = [2.7] ;  u[:] = np.array([300]) ;  u[:] = nd.array([300]) ;  u[:] = nd.array([-1])
u[:] = np.array([-1.5]) ;  u[0] = -1.5 ;  u[0] = 1e9 ;  u[0] = None ;  u[0] = '7' ;  u[0:1] = 300
u[0] = float('nan') ;  i[0] = 2.7 ;  i[:] = 2.7 ;  i[:] = -2.7 ;  i[:] = 2**31 ;  i[:] = [2**31]
i[:] = nd.array([2.7]) ;  i[:] = np.array([2.7]) ;  i[:] = None ;  i[:] = [None] ;  i[:] = True
i[:] = float('inf') ;  i[[0]] = 2.7 ;  i[[0]] = 2**31 ;  b[0] = 2 ;  b[:] = 0.5 ;  b[:] = [2]
b[:] = nd.array([2]) ;  b[[0]] = 2 ;  h[0] = 1e6 ;  h[:] = [1e6] ;  h[0] = 1.0001 ;  l[0] = 2**53+1
l[:] = 2**53+1 ;  l[:] = [2**53+1] ;  l[[0]] = 2**53+1 ;  l[[0]] = [2**53+1] ;  l[0] = np.int64(2**53+1)
l[0:1] = nd.array([2**53+1],dtype='int64') ;  l[[0]] = nd.array([2**53+1],dtype='int64') ;  l[:] = 2**63
d[0] = 0.1 ;  d[:] = 0.1 ;  d[[0]] = 0.1 ;  d[[0]] = [0.1] ;  d[0] = np.float32(0.1) ;  z[:] = 1 ;  z[0:0] = 1
v[5] = 1 ;  v[-4] = 1 ;  v[np.int64(-1)] = 4 ;  v[np.int64(1):] = 4 ;  v[5:] = 4 ;  v[3:] = 4 ;  v[0:5] = [1,2,3]
v[...,0] = 9 ;  v[...,[0]] = 9 ;  v[::-1] = [1,2,3] ;  v[::-2] = [8,9] ;  v[nd.array([2,0])] = nd.array([8,9])
v[nd.array([2,0],dtype='int64')] = [8,9] ;  v[np.array([[2,0]])] = [8,9] ;  v[nd.array([1.7])] = 9 ;  v[[]] = 1
p[1,2] = 1 ;  p[1,...,1] = [[1],[2],[3]] ;  p[:,[0,2],:,[1,3]] = 5
p[:,[0,2],:,[1,3]] = np.arange(8).reshape(2,2,2) ;  p[:,[0,2],[0,1],:] = np.arange(16).reshape(2,2,4)
p[[0,1],:,1,:] = np.arange(24).reshape(2,3,4) ;  p[[0,1],:,1,None,:] = np.arange(24).reshape(2,3,1,4)
p[1][0:2][1][:,1:3] = [7,8] ;  p[1][0:2][1] = nd.array([[1,2,3,4]],dtype='int32') ;  p[1,:,1][1:3][0] = 9
p.reshape((4,12))[1:3,::4] = 5 ;  p.reshape((-1,4))[3][1:] = [1,2,3] ;  p[-1,-2:,:,::2] = nd.array([[1],[2]])
p[0,:,[0,1]] = nd.array([1,2,3,4],dtype='float64') ;  p[0] = p[1] ;  p[:,0] = p[:,2] ;  p[[0,1]] = p[[1,0]]
p[...,0] = p[...,1] ;  p[0][...] = 1 ;  p[0][:] = p[1][0] ;  p[0][None] = 3 ;  p[0,0:2][:,1][...] = 3
a[0].reshape((4,3))[1] = 7 ;  a[0].reshape((4,3))[:,1] = 7 ;  a[1:][0][[0,2]] = 7
a[1:][0][[0,2],1:3] = [[1],[2]] ;  i[0:2] = nd.array([1.9,-1.9]) ;  i[[0,1]] = nd.array([1.9,-1.9])
i[0:2] = [1.9,-1.9] ;  i[[0,1]] = np.array([1.9,-1.9]) ;  h[1:] = nd.array([0.1,70000])
d[1:] = nd.array([0.1,70000],dtype='float16') ;  d[0:2] = np.array([1,2],dtype='uint8') ;  l[0] = True
o[:,0] = [[1,2,3,4]] ;  o[...,::2] = nd.array([1,2])
o[[1],0,::-1] = [1,2,3,4]
"""
HELPERS = """
nd.get_indexing_dispatch_code((0,)) ;  nd.get_indexing_dispatch_code(([0],)) ;  nd.get_indexing_dispatch_code(0)
nd.get_indexing_dispatch_code((0,None,slice(1),Ellipsis)) ;  nd.get_indexing_dispatch_code((0,'x'))
nd.indexing_key_expand_implicit_axes((0,...,1),(2,3,4)) ;  nd.indexing_key_expand_implicit_axes(([0],),(2,3,4))
nd.indexing_key_expand_implicit_axes(0,(2,3,4)) ;  nd.indexing_key_expand_implicit_axes((None,0),(2,3,4))
nd.indexing_key_expand_implicit_axes((np.array([True,False]),),(2,3,4))
nd.get_oshape_of_gather_nd_op((2,3,4),(2,5)) ;  nd.get_indexing_dispatch_code(())
nd.get_indexing_dispatch_code((np.uint8(1),)) ;  nd.get_indexing_dispatch_code((np.array([1]),'x'))
nd.get_indexing_dispatch_code((range(2),)) ;  nd.get_indexing_dispatch_code(((1,2),))
nd.indexing_key_expand_implicit_axes((...,),(2,3,4)) ;  nd.indexing_key_expand_implicit_axes((),(2,3,4))
nd.indexing_key_expand_implicit_axes((0,...,0,0,0),(2,3,4)) ;  nd.get_oshape_of_gather_nd_op((2,3,4),(3,5,2))
nd.get_oshape_of_gather_nd_op((2,3,4),(4,5,2)) ;  nd.get_oshape_of_gather_nd_op((2,3,4),())
nd.indexing_key_expand_implicit_axes((True,0),(2,3,4)) ;  nd.indexing_key_expand_implicit_axes((0,False),(2,3,4))
nd.indexing_key_expand_implicit_axes((True,),(2,3,4)) ;  nd.indexing_key_expand_implicit_axes(True,(2,3,4))
nd.indexing_key_expand_implicit_axes((np.array(True),0),(2,3,4))
nd.indexing_key_expand_implicit_axes(([True,False],0),(2,3,4))
nd.indexing_key_expand_implicit_axes((nd.array([True,False],dtype='bool'),0),(2,3,4))
nd.indexing_key_expand_implicit_axes((nd.array(A>3,dtype='bool'),),(2,3,4))
nd.indexing_key_expand_implicit_axes((nd.array(A[0]>3,dtype='bool'),),(2,3,4))
nd.indexing_key_expand_implicit_axes((nd.array(A[0]>3,dtype='bool').T,),(2,3,4))
nd.indexing_key_expand_implicit_axes((nd.array([2,1]),...),(2,3,4))
nd.indexing_key_expand_implicit_axes([0,1],(2,3,4)) ;  nd.indexing_key_expand_implicit_axes(None,(2,3,4))
nd.indexing_key_expand_implicit_axes((0,0,0,0),(2,3,4))
nd.indexing_key_expand_implicit_axes((0,0,0,...),(2,3,4))
nd.indexing_key_expand_implicit_axes((...,...),(2,3,4))
nd.indexing_key_expand_implicit_axes((...,None,0),(2,3,4)) ;  nd.get_indexing_dispatch_code((True,))
nd.get_indexing_dispatch_code((None,slice(1),0)) ;  nd.get_indexing_dispatch_code((np.int64(1),))
nd.get_indexing_dispatch_code((nd.ones(2),None)) ;  nd.get_indexing_dispatch_code([0])
nd.get_oshape_of_gather_nd_op((2,),(1,2))
"""
CASES = [c.strip() for c in f"{READ};{ASSIGN};{HELPERS}".replace("\n", ";").split(";") if c.strip()]


def facts(array):
    """Shape, dtype and values; floats as text, exactly, where JSON has none (nan, inf)."""
    values = array.asnumpy().ravel().tolist()
    return [list(array.shape), np.dtype(array.dtype).name, [v if v == v and abs(v) < 1e30 else str(v) for v in values]]


def answer(mx, case):
    """What the case gives: facts of what is read and whether it shares memory, of the array assigned to, a helper's
    value as text, or the classes of the exception."""
    names = arrays(mx)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "] = " in case:
                exec(case, names)
                return {"after": facts(names[case[0]])}
            found = eval(case, names)
            if case.startswith("nd."):
                return {"text": str(found)}
            read, before = facts(found), names[case[0]].asnumpy()
            if found.size:
                found[()] = MARK
            return {"read": read, "shares": bool((names[case[0]].asnumpy() != before).any())}
    except Exception as error:
        return {"error": [c.__name__ for c in type(error).__mro__[:-2]]}


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases, {sum('error' in said for said in made.values())} refused")
